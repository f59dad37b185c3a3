// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// applyChanges sets spec and status of result to those of to, with the changes from before to after. It reports whether
// there are any changes.
func applyChanges(before, after, to, result any) (bool, error) {
	former, err := treeOf(before)
	if err != nil {
		return false, err
	}
	latter, err := treeOf(after)
	if err != nil {
		return false, err
	}
	target, err := treeOf(to)
	if err != nil {
		return false, err
	}
	return !reflect.DeepEqual(former, latter), recode(mergeMap(former, latter, target), result)
}

// equal reports whether spec and status of two objects are equal as JSON.
func equal(a, b any) (bool, error) {
	first, err := treeOf(a)
	if err != nil {
		return false, err
	}
	second, err := treeOf(b)
	return reflect.DeepEqual(first, second), err
}

// treeOf returns spec and status of an object as decoded JSON.
func treeOf(object any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	parts := map[string]any{}
	if err := utiljson.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", object, err)
	}
	maps.DeleteFunc(parts, func(name string, _ any) bool { return name != "spec" && name != "status" })
	return parts, nil
}

// recode decodes the JSON of one object into another.
func recode(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding %T: %w", from, err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("decoding %T as %T: %w", from, to, err)
	}
	return nil
}

// merge applies the difference between before and after to a third value. Unchanged parts keep the values of to.
func merge(before, after, to any) any {
	if reflect.DeepEqual(before, after) {
		return to
	}
	switch after := after.(type) {
	case map[string]any:
		former, isMap := before.(map[string]any)
		target, isTargetMap := to.(map[string]any)
		if isMap && isTargetMap {
			return mergeMap(former, after, target)
		}
	case []any:
		former, isList := before.([]any)
		target, isTargetList := to.([]any)
		if isList && isTargetList && len(former) == len(target) {
			return mergeList(former, after, target)
		}
	}
	return after
}

func mergeMap(before, after, to map[string]any) map[string]any {
	result := maps.Clone(to)
	for key, former := range before {
		if _, stays := after[key]; stays {
			continue
		}
		delete(result, key)
		if rest := without(former, to[key]); len(rest) > 0 {
			result[key] = rest
		}
	}
	for key, value := range after {
		former, was := before[key]
		target, has := to[key]
		switch {
		case was && has:
			result[key] = merge(former, value, target)
		case was && reflect.DeepEqual(former, value):
			// An unchanged field that the target lacks is not added.
		default:
			result[key] = value
		}
	}
	return result
}

// without removes the known fields from a struct and returns the rest. If the known struct is empty, it returns nil,
// because the removal of an empty struct means that the whole struct was removed.
func without(known, of any) map[string]any {
	former, isMap := known.(map[string]any)
	target, isTargetMap := of.(map[string]any)
	if !isMap || !isTargetMap || len(former) == 0 {
		return nil
	}
	return mergeMap(former, nil, target)
}

// mergeList applies changes to a list whose elements correspond to those of before by index. Unchanged elements keep
// their target values.
func mergeList(before, after, to []any) []any {
	result := make([]any, 0, len(after))
	used := make([]bool, len(before))
	for _, element := range after {
		kept := element
		for i, former := range before {
			if !used[i] && reflect.DeepEqual(former, element) {
				used[i] = true
				kept = to[i]
				break
			}
		}
		result = append(result, kept)
	}
	return result
}
