// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
)

// FindGateway finds an edge gateway by name or URN, among those that the user is shown.
func (g *Gateways) FindGateway(ctx context.Context, nameOrURN string) (Ref, error) {
	return lookup(ctx, g.client.lookups, key("gateway", nameOrURN), func(ctx context.Context) (Ref, error) {
		in := "organization " + g.client.config.Org
		if err := checkName("edge gateway", nameOrURN, in); err != nil {
			return Ref{}, err
		}
		by := is("name", nameOrURN)
		if isURN(nameOrURN) {
			by = is("id", nameOrURN)
		}
		var page struct {
			Values []wireGateway `json:"values"`
		}
		if err := g.client.getJSON(ctx, gatewaysPage,
			params("page", "1", "pageSize", "32", "filter", jsonFilter(by)), &page); err != nil {
			return Ref{}, fmt.Errorf("looking up edge gateway %s: %w", nameOrURN, err)
		}
		var hits []Ref
		for _, doc := range page.Values {
			hits = append(hits, Ref{ID: doc.ID, Name: doc.Name})
		}
		return only("edge gateway", nameOrURN, in, hits)
	})
}
