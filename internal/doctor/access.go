// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkAccess logs in.
func checkAccess(ctx context.Context, s *survey) {
	session, err := s.open(ctx)
	if err != nil {
		s.accessProblem(err)
		return
	}
	s.session = session
	user, err := session.User(ctx)
	switch {
	case err != nil:
		s.accessProblem(err)
	default:
		s.fact("%s, organization %s, user %s", session.Site(), session.Org(), user)
	}
}

func (s *survey) accessProblem(err error) {
	found, isLookup := errors.AsType[*vcd.LookupError](err)
	switch {
	case errors.Is(err, vcd.ErrTLS):
		s.problem("give the certificate of the authority that signed it: spec.tls.caBundle of the identity, or "+
			"--ca-file", "the certificate of the site is not trusted: %v", err)
	case isLookup && found.Kind == "API version":
		s.problem("upgrade VMware Cloud Director to 10.4.2 or later", "%s", found)
	case isLookup:
		s.problem("correct the address of the site", "%s", found)
	case errors.Is(err, vcd.ErrUnauthorized):
		s.problem("correct the organization, user name and password, or make a new API token",
			"VCD refuses the credentials: %v", err)
	case errors.Is(err, vcd.ErrForbidden):
		s.problem("enable the user and the organization in VCD", "the user may not log in: %v", err)
	default:
		s.problem("correct the address, or make the network, proxy and DNS lead to the site",
			"the site does not answer as VCD: %v", err)
	}
}

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

// separates reports whether any VMs are kept on different hosts.
func separates(spec infrav1.AntiAffinitySpec) bool {
	wants := func(a infrav1.AntiAffinity) bool { return a != "" && a != infrav1.AntiAffinityNone }
	return wants(spec.ControlPlane) || wants(spec.MachineDeployments) ||
		slices.ContainsFunc(spec.Overrides, func(o infrav1.AntiAffinityOverride) bool { return wants(o.Policy) })
}

func usesNAT(c *infrav1.VCDCluster) bool {
	edge := c.Spec.Endpoint.EdgeGateway
	return edge != nil && edge.OneArm != nil || c.Spec.LoadBalancer.OneArm != nil ||
		slices.ContainsFunc(c.Spec.LoadBalancer.Gateways,
			func(g infrav1.LoadBalancerGateway) bool { return g.OneArm != nil })
}

// checkLease reports leases that stop or delete nodes.
func checkLease(ctx context.Context, s *survey) {
	leases, known, err := s.session.Leases(ctx)
	switch {
	case err != nil:
		s.unread(err, "reading the leases of the organization", "check again later")
	case !known:
		s.fact("the user may not read the longest leases of the organization")
	case leases.Runtime > 0 || leases.Storage > 0:
		s.warn("set both leases of vApps in the policies of the organization to never expire",
			"organization %s limits leases of vApps (runtime: %s, storage: %s): VCD stops and deletes nodes whose "+
				"lease ends while the manager cannot renew it", s.session.Org(), leaseText(leases.Runtime),
			leaseText(leases.Storage))
	}
}

func leaseText(d time.Duration) string {
	if d == 0 {
		return "never expires"
	}
	return d.String()
}
