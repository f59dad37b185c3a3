// SPDX-License-Identifier: Apache-2.0

// Package freeze writes Go values down as JSON and reads them back, with everything they hold: unexported fields,
// numbers inside any, empty against nil, and which pointers are the same. What is added to a type is in its dump
// without a line of code; what cannot be written down (functions, channels, interfaces with methods) is an error, never
// left out. It knows nothing of what it writes.
//
// A pointer that was met before is written as {"$ref": "/path/of/the/first"}, and a value inside any that JSON would
// turn into something else as {"$go": "int", "value": 5}. Pointers into slices or structs become copies.
package freeze

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

const (
	keyRef   = "$ref"
	keyGo    = "$go"
	keyValue = "value"
)

var (
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	anyType         = reflect.TypeFor[any]()
)

// isText reports whether a type is written as its text: times, addresses.
func isText(t reflect.Type) bool {
	return t.Implements(textMarshaler) && reflect.PointerTo(t).Implements(textUnmarshaler)
}

// Freeze writes down what v points to.
func Freeze(v any) (json.RawMessage, error) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return nil, fmt.Errorf("freezing %T: not a pointer to something", v)
	}
	e := encoder{seen: map[unsafe.Pointer]string{}}
	tree, err := e.value(p.Elem(), "")
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

type encoder struct {
	seen map[unsafe.Pointer]string
}

// open makes an unexported field readable and settable. The value must be addressable.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// value converts v, which is addressable, into JSON's types.
func (e *encoder) value(v reflect.Value, path string) (any, error) {
	if isText(v.Type()) {
		b, err := v.Interface().(encoding.TextMarshaler).MarshalText() //nolint:forcetypeassert // isText
		return string(b), err
	}
	switch v.Kind() {
	case reflect.Struct:
		return e.fields(v, path)
	case reflect.Map:
		return e.entries(v, path)
	case reflect.Slice, reflect.Array:
		return e.elements(v, path)
	case reflect.Pointer:
		return e.pointer(v, path)
	case reflect.Interface:
		return e.inner(v, path)
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Interface(), nil
	default:
		return nil, fmt.Errorf("freezing %s: a %s cannot be written down", path, v.Type())
	}
}

func (e *encoder) fields(v reflect.Value, path string) (any, error) {
	out := map[string]any{}
	for i := range v.NumField() {
		field := open(v.Field(i))
		name := v.Type().Field(i).Name
		if field.IsZero() && field.Kind() != reflect.Func && field.Kind() != reflect.Chan {
			continue
		}
		x, err := e.value(field, path+"/"+name)
		if err != nil {
			return nil, err
		}
		out[name] = x
	}
	return out, nil
}

func (e *encoder) entries(v reflect.Value, path string) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	out := map[string]any{}
	for _, k := range sortedKeys(v) {
		name, err := keyText(k)
		if err != nil {
			return nil, fmt.Errorf("freezing %s: %w", path, err)
		}
		entry := reflect.New(v.Type().Elem()).Elem() // addressable
		entry.Set(v.MapIndex(k))
		x, err := e.value(entry, path+"/"+escape(name))
		if err != nil {
			return nil, err
		}
		out[name] = x
	}
	return out, nil
}

func (e *encoder) elements(v reflect.Value, path string) (any, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return nil, nil
	}
	out := make([]any, 0, v.Len())
	for i := range v.Len() {
		x, err := e.value(v.Index(i), path+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func (e *encoder) pointer(v reflect.Value, path string) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	if first, ok := e.seen[v.UnsafePointer()]; ok {
		return map[string]any{keyRef: first}, nil
	}
	e.seen[v.UnsafePointer()] = path
	return e.value(v.Elem(), path)
}

// inner writes what an any holds, with its type where JSON would change it.
func (e *encoder) inner(v reflect.Value, path string) (any, error) {
	if v.Type() != anyType {
		return nil, fmt.Errorf("freezing %s: a %s cannot be written down", path, v.Type())
	}
	if v.IsNil() {
		return nil, nil
	}
	content := reflect.New(v.Elem().Type()).Elem()
	content.Set(v.Elem())
	x, err := e.value(content, path)
	if err != nil {
		return nil, err
	}
	if native(content) {
		return x, nil
	}
	name := content.Type().String()
	if _, err := typeByName(name); err != nil {
		return nil, fmt.Errorf("freezing %s: %w", path, err)
	}
	return map[string]any{keyGo: name, keyValue: x}, nil
}

// native reports whether JSON gives back the same.
func native(v reflect.Value) bool {
	switch x := v.Interface().(type) {
	case bool, string, float64:
		return true
	case []any:
		return x != nil
	case map[string]any:
		_, clash := x[keyGo]
		return x != nil && !clash
	default:
		return false
	}
}

var pathEscape = strings.NewReplacer("~", "~0", "/", "~1")

// escape makes a key a step of a path.
func escape(key string) string { return pathEscape.Replace(key) }
