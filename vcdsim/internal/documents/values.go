// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// Number returns a JSON number as an integer, or 0 if the value is not a number.
func Number(v any) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// Complete sets missing fields to their defaults.
func Complete(body, defaults map[string]any) {
	for k, v := range defaults {
		if body[k] == nil || body[k] == "" {
			body[k] = v
		}
	}
}

// Enabled reports whether an object is enabled. This is the default.
func Enabled(body map[string]any) bool {
	on, ok := body["enabled"].(bool)
	return on || !ok
}

// ProviderScope is the scope of objects that are visible only to the provider.
func ProviderScope(r *api.Request, _ map[string]any) (Scope, error) {
	return Scope{}, r.ByProvider("LOAD_BALANCER_PROVIDER_VIEW")
}
