// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// basics are the types that are written by name.
var basics = []reflect.Type{
	reflect.TypeFor[bool](),
	reflect.TypeFor[string](),
	reflect.TypeFor[float32](),
	reflect.TypeFor[float64](),
	reflect.TypeFor[int](),
	reflect.TypeFor[int8](),
	reflect.TypeFor[int16](),
	reflect.TypeFor[int32](),
	reflect.TypeFor[int64](),
	reflect.TypeFor[uint](),
	reflect.TypeFor[uint8](),
	reflect.TypeFor[uint16](),
	reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](),
	anyType,
}

// typeByName is a basic type, or lists and maps of one.
func typeByName(name string) (reflect.Type, error) {
	for _, t := range basics {
		if t.String() == name {
			return t, nil
		}
	}
	if rest, ok := strings.CutPrefix(name, "[]"); ok {
		elem, err := typeByName(rest)
		if err != nil {
			return nil, err
		}
		return reflect.SliceOf(elem), nil
	}
	if rest, ok := strings.CutPrefix(name, "map[string]"); ok {
		elem, err := typeByName(rest)
		if err != nil {
			return nil, err
		}
		return reflect.MapOf(reflect.TypeFor[string](), elem), nil
	}
	return nil, fmt.Errorf("a %s inside any cannot be read back", name)
}

// sortedKeys are a map's keys in the order both directions go through them.
func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.CanInt() {
			return cmp.Compare(a.Int(), b.Int())
		}
		return cmp.Compare(a.String(), b.String())
	})
	return keys
}

func keyText(k reflect.Value) (string, error) {
	switch {
	case k.Kind() == reflect.String:
		return k.String(), nil
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	default:
		return "", fmt.Errorf("a map by %s cannot be written down", k.Type())
	}
}

// keyOf reads a key of a type.
func keyOf(text string, t reflect.Type) (reflect.Value, error) {
	k := reflect.New(t).Elem()
	switch {
	case t.Kind() == reflect.String:
		k.SetString(text)
	case k.CanInt():
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return k, fmt.Errorf("the key %q is not a number", text)
		}
		k.SetInt(n)
	default:
		return k, fmt.Errorf("a map by %s cannot be read", t)
	}
	return k, nil
}
