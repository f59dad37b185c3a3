// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
)

// Thaw reads what Freeze wrote into what v points to. Fields that the type does not have are errors; fields that are
// not in the data, because they were zero or not yet thought of, keep their value. On an error v is as it was.
func Thaw(data json.RawMessage, v any) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("thawing into %T: not a pointer to something", v)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return fmt.Errorf("thawing: %w", err)
	}
	d := decoder{seen: map[string]reflect.Value{}}
	fresh := reflect.New(p.Elem().Type()).Elem()
	fresh.Set(p.Elem())
	if err := d.value(tree, fresh, ""); err != nil {
		return fmt.Errorf("thawing %w", err)
	}
	p.Elem().Set(fresh)
	return nil
}

type decoder struct {
	seen map[string]reflect.Value
}

func mismatch(path string, tree any, t reflect.Type) error {
	return fmt.Errorf("%s: %T is not a %s", path, tree, t)
}

// value sets into, which is settable and zero, from the tree.
func (d *decoder) value(tree any, into reflect.Value, path string) error {
	if isText(into.Type()) {
		s, ok := tree.(string)
		if !ok {
			return mismatch(path, tree, into.Type())
		}
		if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil { //nolint:forcetypeassert // isText
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	if tree == nil {
		return d.null(into, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return d.fields(tree, into, path)
	case reflect.Map:
		return d.entries(tree, into, path)
	case reflect.Slice, reflect.Array:
		return d.elements(tree, into, path)
	case reflect.Pointer:
		return d.pointer(tree, into, path)
	case reflect.Interface:
		return d.inner(tree, into, path)
	default:
		return d.scalar(tree, into, path)
	}
}

func (d *decoder) null(into reflect.Value, path string) error {
	switch into.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return nil
	default:
		return mismatch(path, nil, into.Type())
	}
}

// fields goes through a struct in the order it was written, so that a reference comes after what it refers to.
func (d *decoder) fields(tree any, into reflect.Value, path string) error {
	m, ok := tree.(map[string]any)
	if !ok {
		return mismatch(path, tree, into.Type())
	}
	found := 0
	for i := range into.NumField() {
		name := into.Type().Field(i).Name
		x, ok := m[name]
		if !ok {
			continue
		}
		found++
		if err := d.value(x, open(into.Field(i)), path+"/"+name); err != nil {
			return err
		}
	}
	if found == len(m) {
		return nil
	}
	for name := range m {
		if _, ok := into.Type().FieldByName(name); !ok {
			return fmt.Errorf("%s: a %s has no field %s", path, into.Type(), name)
		}
	}
	return fmt.Errorf("%s: fields of %s are embedded", path, into.Type())
}

func (d *decoder) entries(tree any, into reflect.Value, path string) error {
	m, ok := tree.(map[string]any)
	if !ok {
		return mismatch(path, tree, into.Type())
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(m)))
	// The keys themselves are sorted, not their texts: 10 comes after 9.
	index := reflect.MakeMapWithSize(reflect.MapOf(into.Type().Key(), anyType), len(m))
	for text, x := range m {
		k, err := keyOf(text, into.Type().Key())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		box := reflect.New(anyType).Elem()
		if x != nil {
			box.Set(reflect.ValueOf(x))
		}
		index.SetMapIndex(k, box)
	}
	for _, k := range sortedKeys(index) {
		text, err := keyText(k)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		entry := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(m[text], entry, path+"/"+escape(text)); err != nil {
			return err
		}
		into.SetMapIndex(k, entry)
	}
	return nil
}

func (d *decoder) elements(tree any, into reflect.Value, path string) error {
	list, ok := tree.([]any)
	if !ok || into.Kind() == reflect.Array && len(list) != into.Len() {
		return mismatch(path, tree, into.Type())
	}
	if into.Kind() == reflect.Slice {
		into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
	}
	for i, x := range list {
		if err := d.value(x, into.Index(i), path+"/"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) pointer(tree any, into reflect.Value, path string) error {
	if m, ok := tree.(map[string]any); ok && len(m) == 1 {
		if ref, ok := m[keyRef].(string); ok {
			first, known := d.seen[ref]
			if !known || first.Type() != into.Type() {
				return fmt.Errorf("%s: nothing to refer to at %s", path, ref)
			}
			into.Set(first)
			return nil
		}
	}
	p := reflect.New(into.Type().Elem())
	d.seen[path] = p
	into.Set(p)
	return d.value(tree, p.Elem(), path)
}

// inner fills an any.
func (d *decoder) inner(tree any, into reflect.Value, path string) error {
	if into.Type() != anyType {
		return mismatch(path, tree, into.Type())
	}
	t := plainType(tree)
	content := tree
	if m, ok := tree.(map[string]any); ok {
		if name, ok := m[keyGo].(string); ok {
			named, err := typeByName(name)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			t = named
			content = m[keyValue]
		}
	}
	x := reflect.New(t).Elem()
	if err := d.value(content, x, path); err != nil {
		return err
	}
	into.Set(x)
	return nil
}

// plainType is the type that a value in JSON has inside any.
func plainType(tree any) reflect.Type {
	switch tree.(type) {
	case json.Number:
		return reflect.TypeFor[float64]()
	default:
		return reflect.TypeOf(tree)
	}
}

func (d *decoder) scalar(tree any, into reflect.Value, path string) error {
	switch x := tree.(type) {
	case bool:
		if into.Kind() == reflect.Bool {
			into.SetBool(x)
			return nil
		}
	case string:
		if into.Kind() == reflect.String {
			into.SetString(x)
			return nil
		}
	case json.Number:
		if err := number(x.String(), into); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	return mismatch(path, tree, into.Type())
}

func number(text string, into reflect.Value) error {
	bits := 64
	if into.CanInt() || into.CanUint() || into.CanFloat() {
		bits = into.Type().Bits()
	}
	var err error
	switch {
	case into.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, bits)
		into.SetInt(n)
	case into.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, bits)
		into.SetUint(n)
	case into.CanFloat():
		var n float64
		n, err = strconv.ParseFloat(text, bits)
		into.SetFloat(n)
	default:
		return fmt.Errorf("the number %s is not a %s", text, into.Type())
	}
	if err != nil {
		return fmt.Errorf("the number %s is not a %s", text, into.Type())
	}
	return nil
}
