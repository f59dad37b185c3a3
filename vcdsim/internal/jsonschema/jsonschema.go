// Package jsonschema checks documents against the part of JSON Schema that types of defined entities use: type,
// required, properties, additionalProperties, items, enum, and $ref to definitions of the same schema.
package jsonschema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ErrInvalid is what every refusal wraps.
var ErrInvalid = errors.New("the document does not match its schema")

// maxDepth bounds schemas that refer to themselves.
const maxDepth = 64

// A schema is a JSON Schema as it was decoded.
type schema = map[string]any

// Validate checks a decoded document.
func Validate(root schema, document any) error {
	v := validator{root: root}
	return v.check(root, document, "", 0)
}

type validator struct{ root schema }

func refuse(path, format string, args ...any) error {
	if path == "" {
		path = "/"
	}
	return fmt.Errorf("%w: %s: %s", ErrInvalid, path, fmt.Sprintf(format, args...))
}

func (v validator) check(s schema, value any, path string, depth int) error {
	if depth > maxDepth {
		return refuse(path, "nested too deeply")
	}
	if ref, ok := s["$ref"].(string); ok {
		target, found := v.resolve(ref)
		if !found {
			return refuse(path, "the schema refers to %s, which is not there", ref)
		}
		return v.check(target, value, path, depth+1)
	}
	if !isOf(s["type"], value) {
		return refuse(path, "it is not of type %v", s["type"])
	}
	if enum, ok := s["enum"].([]any); ok &&
		!slices.ContainsFunc(enum, func(x any) bool { return reflect.DeepEqual(x, value) }) {
		return refuse(path, "%v is not one of %v", value, enum)
	}
	switch x := value.(type) {
	case map[string]any:
		return v.object(s, x, path, depth)
	case []any:
		return v.array(s, x, path, depth)
	}
	return nil
}

// resolve follows a reference such as #/definitions/name.
func (v validator) resolve(ref string) (schema, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	at := v.root
	for _, part := range strings.Split(rest, "/") {
		if at, ok = at[part].(schema); !ok {
			return nil, false
		}
	}
	return at, true
}

func (v validator) object(s schema, value map[string]any, path string, depth int) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if key, ok := name.(string); ok {
			if _, found := value[key]; !found {
				return refuse(path, "required key [%s] not found", key)
			}
		}
	}
	properties, _ := s["properties"].(schema)
	for key, item := range value {
		sub, known := properties[key].(schema)
		if !known {
			switch more := s["additionalProperties"].(type) {
			case bool:
				if !more {
					return refuse(path, "key [%s] is not permitted", key)
				}
				continue
			case schema:
				sub = more
			default:
				continue
			}
		}
		if err := v.check(sub, item, path+"/"+key, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (v validator) array(s schema, value []any, path string, depth int) error {
	items, ok := s["items"].(schema)
	if !ok {
		return nil
	}
	for i, item := range value {
		if err := v.check(items, item, fmt.Sprintf("%s/%d", path, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isOf reports whether a value has a type, or one of several; no type is any.
func isOf(types, value any) bool {
	switch t := types.(type) {
	case string:
		return typeMatches(t, value)
	case []any:
		return slices.ContainsFunc(t, func(x any) bool { return isOf(x, value) })
	}
	return true
}

func typeMatches(t string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return t == "object"
	case []any:
		return t == "array"
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && value == float64(int64(value))
	default:
		return t == "null"
	}
}
