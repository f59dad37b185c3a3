package vcd

import (
	"context"
	"fmt"
)

// FindGateway finds an edge gateway by name or URN, among those that the user is shown.
func (s *Session) FindGateway(ctx context.Context, nameOrURN string) (Ref, error) {
	return lookup(ctx, s.lookups, key("gateway", nameOrURN), func(ctx context.Context) (Ref, error) {
		in := "organization " + s.config.Org
		if err := checkName("edge gateway", nameOrURN, in); err != nil {
			return Ref{}, err
		}
		by := term{"name", nameOrURN}
		if isURN(nameOrURN) {
			by = term{"id", nameOrURN}
		}
		var page struct {
			Values []wireGateway `json:"values"`
		}
		if err := s.getJSON(ctx, "/cloudapi/1.0.0/edgeGateways", params("page", "1", "pageSize", "32", "filter", jsonFilter(by)), &page); err != nil {
			return Ref{}, fmt.Errorf("looking up edge gateway %s: %w", nameOrURN, err)
		}
		var hits []Ref
		for _, g := range page.Values {
			hits = append(hits, Ref{ID: g.ID, Name: g.Name})
		}
		return only("edge gateway", nameOrURN, in, hits)
	})
}
