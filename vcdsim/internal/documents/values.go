// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Number reads a JSON number, 0 if there is none.
func Number(v any) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// Complete sets the fields that are missing to their defaults.
func Complete(body, defaults map[string]any) {
	for k, v := range defaults {
		if body[k] == nil || body[k] == "" {
			body[k] = v
		}
	}
}

// Enabled reports whether an object is enabled, which is the default.
func Enabled(body map[string]any) bool {
	on, ok := body["enabled"].(bool)
	return on || !ok
}

// ProviderScope is the scope of what only the provider sees.
func ProviderScope(r *api.Request, _ map[string]any) (Scope, error) {
	return Scope{}, r.ByProvider("LOAD_BALANCER_PROVIDER_VIEW")
}
