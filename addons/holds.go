// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"bytes"
	"encoding/json"
)

// Holds reports whether an object in a cluster contains everything that a rendered one contains. Additions by the API
// server or others are ignored. Lists must be equal, except that lists of named elements may contain additional
// elements.
func Holds(actual, desired any) bool {
	switch want := desired.(type) {
	case nil:
		return actual == nil
	case map[string]any:
		have, _ := actual.(map[string]any)
		for key := range want {
			if !Holds(have[key], want[key]) {
				return false
			}
		}
		return true
	case []any:
		have, _ := actual.([]any)
		return holdsList(have, want)
	}
	return equal(actual, desired)
}

func holdsList(have, want []any) bool {
	named := true
	for _, element := range want {
		named = named && nameOf(element) != ""
	}
	if !named && len(have) != len(want) {
		return false
	}
	for i, element := range want {
		if !Holds(pick(have, i, nameOf(element)), element) {
			return false
		}
	}
	return true
}

// pick returns the element with the name, or the element at index i if the name is empty.
func pick(list []any, i int, name string) any {
	for _, element := range list {
		if name != "" && nameOf(element) == name {
			return element
		}
	}
	if name == "" && i < len(list) {
		return list[i]
	}
	return nil
}

func nameOf(element any) string {
	content, _ := element.(map[string]any)
	name, _ := content["name"].(string)
	return name
}

// equal reports whether two scalar values are equal. Numbers are compared independently of their Go types.
func equal(a, b any) bool {
	left, leftErr := json.Marshal(a)
	right, rightErr := json.Marshal(b)
	return leftErr == nil && rightErr == nil && bytes.Equal(left, right)
}
