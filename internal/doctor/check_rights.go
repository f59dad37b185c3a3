// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
)

// checkRights compares the rights of the user with those that the plan takes.
func checkRights(ctx context.Context, s *survey) {
	names, known, err := s.session.Rights(ctx)
	switch {
	case err != nil:
		s.unread(err, "reading the rights of the user", "check again later")
		return
	case s.session.IsProvider():
		s.fact("a user of the organization System has all rights")
		return
	case !known:
		s.warn("compare the role with docs/guides/rights.md by hand", "the user may not read the rights of its role")
		return
	}
	s.held = map[string]bool{}
	for _, name := range names {
		s.held[name] = true
	}
	for _, row := range rights.Table() {
		severity, needed := s.needs(row.Need)
		for _, right := range row.Rights {
			if needed && !s.holds(right) {
				s.missing = true
				s.lacks(severity, row, right)
			}
		}
	}
	s.fact("%d rights", len(names))
}

// needs reports whether the plan takes a right for something. Those that it does not know of, other checks do.
func (s *survey) needs(need rights.Need) (severity Severity, needed bool) {
	c := s.plan.Cluster
	if c == nil {
		c = &infrav1.VCDCluster{}
	}
	balancers := createsBalancers(c) || c.Spec.Endpoint.Type == infrav1.EndpointEdgeGateway
	switch need {
	case rights.Always:
		return Problem, true
	case rights.Balancers:
		return Problem, balancers
	case rights.NAT:
		if usesNAT(c) {
			return Problem, true
		}
		return Warning, balancers
	case rights.Firewall, rights.Certificates, rights.Spaces:
		return Warning, balancers
	case rights.AntiAffinity:
		return Problem, separates(c.Spec.AntiAffinity)
	case rights.Entity, rights.GrowDisks, rights.Sometimes:
	}
	return "", false
}

func (s *survey) lacks(severity Severity, row rights.Row, right string) {
	s.add(severity, fmt.Sprintf("add the right to the role of the user, and to a rights bundle that is published to "+
		"organization %s", s.session.Org()), "right %q is missing, for %s: without it, %s", right,
		rights.Plain(row.For), rights.Plain(row.Without))
}

// holds reports whether the user has a right, or it is not known which it has. That of administrators contains the one
// of users.
func (s *survey) holds(right string) bool {
	return s.held == nil || s.held[right] ||
		right == "vmware:capvcdCluster: Full Access" && s.held["vmware:capvcdCluster: Administrator Full access"]
}
