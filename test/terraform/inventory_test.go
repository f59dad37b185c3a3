// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// inventory returns the state of a simulator except its tasks and sessions, as JSON without empty values.
func inventory(g *WithT, sim *vcdsim.Simulator) map[string]any {
	state := sim.State()
	state.Tasks = nil
	state.Sessions = nil
	encoded, err := json.Marshal(state)
	g.Expect(err).NotTo(HaveOccurred())
	var out map[string]any
	g.Expect(json.Unmarshal(encoded, &out)).To(Succeed())
	out["Documents"] = objects(out["Documents"])
	out["Access"] = shared(out["Access"])
	filled, _ := withoutEmpty(out).(map[string]any)
	return filled
}

// objects returns the documents except those that only contain initial settings.
func objects(documents any) []any {
	list, _ := documents.([]any)
	var out []any
	for _, item := range list {
		document, _ := item.(map[string]any)
		delete(document, "Version") // the number of changes
		body, _ := withoutEmpty(document["Body"]).(map[string]any)
		delete(body, "listenerIp") // of DNS, which exists even while DNS is disabled
		if body["mode"] == "DISABLED" {
			delete(body, "mode") // of DHCPv6
		}
		if len(body) > 0 {
			out = append(out, document)
		}
	}
	return out
}

// shared returns the access settings of objects that are shared.
func shared(settings any) []any {
	list, _ := settings.([]any)
	return slices.DeleteFunc(list, func(item any) bool {
		setting, _ := withoutEmpty(item).(map[string]any)
		return len(setting) == 1 // only the ID
	})
}

// withoutEmpty returns a value without empty, null, zero and false fields. It modifies the value.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = withoutEmpty(item)
		}
		maps.DeleteFunc(v, func(_ string, item any) bool { return isEmpty(item) })
		return v
	case []any:
		for i, item := range v {
			v[i] = withoutEmpty(item)
		}
		return v
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
	case string:
		return v == ""
	case float64:
		return v == 0
	default:
		return v == nil || v == false
	}
}

// expectSame checks that two inventories are equal.
func expectSame(t *testing.T, before, after map[string]any) {
	t.Helper()
	if difference := cmp.Diff(before, after); difference != "" {
		t.Errorf("the state of the simulator differs (-before +after):\n%s", difference)
	}
}
