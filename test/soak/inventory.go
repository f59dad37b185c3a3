// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// inventory returns everything that a site stores, except its tasks and sessions: values by their paths.
func inventory(state vcdsim.State) (map[string]string, error) {
	state.Tasks = nil
	state.Sessions = nil
	encoded, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encoding the state of a site: %w", err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return nil, fmt.Errorf("decoding the state of a site: %w", err)
	}
	out := map[string]string{}
	flatten("", decoded, out)
	return out, nil
}

// flatten lists the values in a value by their paths, without those that are empty.
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
		if v != nil && v != false && v != "" && v != 0.0 {
			into[path] = fmt.Sprint(v)
		}
	}
}

// keyOf returns the name and ID of an item of a list, or its position if it has no ID.
func keyOf(item any, position int) string {
	fields, _ := item.(map[string]any)
	if fields["ID"] == nil {
		return fmt.Sprint(position)
	}
	return fmt.Sprint(fields["Name"], " ", fields["ID"])
}

// differences describes how two inventories differ.
func differences(before, after map[string]string) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if before[path] != after[path] {
			out = append(out, fmt.Sprintf("%s was %q and is %q", path, before[path], after[path]))
		}
	}
	return out
}
