// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// inventory returns the state of a simulator except its tasks and sessions, as JSON without empty values.
func inventory(t *testing.T, sim *vcdsim.Simulator) map[string]any {
	t.Helper()
	state := sim.State()
	state.Tasks = nil
	state.Sessions = nil
	encoded, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(encoded, &out); err != nil {
		t.Fatal(err)
	}
	filled, _ := withoutEmpty(out).(map[string]any)
	return filled
}

// withoutEmpty returns a value without its empty, null, zero and false parts. It may modify the value.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = withoutEmpty(item)
		}
		maps.DeleteFunc(v, func(_ string, item any) bool { return isEmpty(item) })
		return v
	case []any:
		return slices.DeleteFunc(v, func(item any) bool { return isEmpty(withoutEmpty(item)) })
	default:
		return v
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return v == nil || v == false || v == "" || v == 0.0
	}
}

// expectSame reports each difference between two inventories as an error.
func expectSame(t *testing.T, before, after map[string]any) {
	t.Helper()
	had := map[string]string{}
	flatten("", before, had)
	has := map[string]string{}
	flatten("", after, has)
	all := maps.Clone(had)
	maps.Copy(all, has)
	var differences []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if had[path] != has[path] {
			differences = append(differences, fmt.Sprintf("%s was %q and is %q", path, had[path], has[path]))
		}
	}
	for _, text := range differences[:min(len(differences), maxReported)] {
		t.Error(text)
	}
	if len(differences) > maxReported {
		t.Errorf("and %d more differences", len(differences)-maxReported)
	}
}

// flatten stores the leaf values of a value by path.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			flatten(path+"."+key, item, into)
		}
	case []any:
		for i, item := range v {
			flatten(fmt.Sprintf("%s[%s]", path, keyOf(item, i)), item, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

// keyOf returns the name and ID of an item in a list, or its position if it has neither.
func keyOf(item any, position int) string {
	fields, _ := item.(map[string]any)
	if fields["ID"] == nil {
		return fmt.Sprint(position)
	}
	return fmt.Sprint(fields["Name"], " ", fields["ID"])
}
