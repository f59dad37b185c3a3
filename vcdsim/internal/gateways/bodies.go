// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"encoding/json"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Rest returns the listed fields that a JSON document sets. The document must be valid.
func Rest(raw []byte, fields []string) map[string]any {
	all := map[string]any{}
	out := map[string]any{}
	_ = json.Unmarshal(raw, &all) // the caller has already parsed it
	for _, f := range fields {
		if all[f] != nil {
			out[f] = all[f]
		}
	}
	return out
}

// SameVersion refuses a change of an object that has changed since the client read it. Requests without a version are
// not checked.
func SameVersion(body map[string]any, old *store.Object) error {
	v, ok := body["version"].(map[string]any)
	delete(body, "version")
	if old == nil || !ok {
		return nil
	}
	if n, ok := v["version"].(float64); ok && int(n) != old.Version-1 {
		return store.Refuse(http.StatusBadRequest, "OBJECT_VERSION_MISMATCH",
			"The version %d of the object is not the current version %d.", int(n), old.Version-1)
	}
	return nil
}
