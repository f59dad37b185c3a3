// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// listByCursor returns the handler of a list with cursors of the objects of a gateway or network.
func listByCursor(c *Collection) api.Handler {
	return func(r *api.Request) (*api.Response, error) {
		if _, err := c.Scope(r, nil); err != nil {
			return nil, err
		}
		if c.Unfiltered && r.Query.Get("filter") != "" {
			return nil, store.BadRequest("Filtering is not supported here.")
		}
		var out []any
		for _, d := range c.Scoped(r) {
			out = append(out, c.Shown(r, d))
		}
		return r.CursorPage(out)
	}
}
