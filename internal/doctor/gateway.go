// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// balances reports whether the plan has load balancers; without a cluster, it may.
func (s *survey) balances() bool {
	c := s.plan.Cluster
	return c == nil || createsBalancers(c) || c.Spec.Endpoint.Type == infrav1.EndpointEdgeGateway
}

// createsBalancers reports whether the provider installs a cloud controller manager that creates load balancers for c.
func createsBalancers(c *infrav1.VCDCluster) bool {
	mode := c.Spec.CloudProvider.Mode
	return mode != infrav1.CloudProviderNone && mode != infrav1.CloudProviderExternal &&
		c.Spec.LoadBalancer.Mode != infrav1.LoadBalancerDisabled
}

// checkGateways checks the edge gateways that load balancers are made on.
func checkGateways(ctx context.Context, s *survey) {
	if !s.balances() {
		return
	}
	for _, name := range s.furtherGateways() {
		found, err := s.session.Gateways.FindGateway(ctx, name)
		if err != nil {
			s.unread(err, "looking up edge gateway "+name, "correct spec.loadBalancer.gateways of the VCDCluster")
			continue
		}
		s.addGateway(found)
	}
	for _, ref := range s.gateways {
		gateway, err := s.session.Gateways.Gateway(ctx, ref.ID)
		if err != nil {
			s.unread(err, "reading edge gateway "+ref.Name, "give the user the right to view edge gateways")
			continue
		}
		s.checkGateway(ctx, gateway)
	}
}

func (s *survey) furtherGateways() []string {
	var all []string
	if c := s.plan.Cluster; c != nil {
		for _, g := range c.Spec.LoadBalancer.Gateways {
			if g.EdgeGateway != "" {
				all = append(all, g.EdgeGateway)
			}
		}
	}
	return all
}

func (s *survey) checkGateway(ctx context.Context, g vcd.Gateway) {
	if g.Status == vcd.RealizationFailed {
		s.problem("let the provider repair it", "VCD could not create edge gateway %s as it is configured", g.Name)
		return
	}
	settings, err := s.session.Balancers.Settings(ctx, g.ID)
	switch {
	case err != nil:
		s.unread(err, "reading the load balancer of edge gateway "+g.Name, "give the user the right to view it")
		return
	case !settings.Enabled:
		s.add(s.severity(), "let the provider enable NSX Advanced Load Balancer on it, or set "+
			"spec.loadBalancer.mode of the VCDCluster to Disabled",
			"edge gateway %s has no load balancer: Services of type LoadBalancer get no address", g.Name)
		return
	}
	s.checkEngines(ctx, g)
	s.checkOutside(ctx, g)
}

// severity is that of what keeps load balancers from being made: the control plane may need one.
func (s *survey) severity() Severity {
	if c := s.plan.Cluster; c != nil && c.Spec.Endpoint.Type == infrav1.EndpointEdgeGateway {
		return Problem
	}
	return Warning
}

// checkEngines checks that a service engine group has room.
func (s *survey) checkEngines(ctx context.Context, g vcd.Gateway) {
	groups, err := s.session.Balancers.EngineGroups(ctx, g.ID)
	if err != nil {
		s.unread(err, "listing service engine groups of edge gateway "+g.Name, "give the user the right to view them")
		return
	}
	wished := s.engineGroup()
	if wished != "" {
		groups = slices.DeleteFunc(groups, func(x vcd.EngineGroup) bool { return x.Name != wished && x.ID != wished })
	}
	switch {
	case len(groups) == 0 && wished != "":
		s.add(s.severity(), "correct spec.loadBalancer.serviceEngineGroup of the VCDCluster, or let the provider "+
			"assign the group", "service engine group %q is not assigned to edge gateway %s", wished, g.Name)
	case len(groups) == 0:
		s.add(s.severity(), "let the provider assign one", "edge gateway %s has no service engine group", g.Name)
	case !slices.ContainsFunc(groups, func(x vcd.EngineGroup) bool { return x.Max == 0 || x.Deployed < x.Max }):
		s.add(s.severity(), "delete virtual services, or let the provider raise the limit or assign another group",
			"service engine group %s of edge gateway %s has all of its %d virtual services", groups[0].Name, g.Name,
			groups[0].Max)
	}
}

func (s *survey) engineGroup() string {
	c := s.plan.Cluster
	if c == nil {
		return ""
	}
	if edge := c.Spec.Endpoint.EdgeGateway; edge != nil && edge.ServiceEngineGroup != "" {
		return edge.ServiceEngineGroup
	}
	return c.Spec.LoadBalancer.ServiceEngineGroup
}

// checkOutside checks that there is an address for a load balancer.
func (s *survey) checkOutside(ctx context.Context, g vcd.Gateway) {
	if g.UsesIPSpaces {
		s.checkSpaces(ctx, g)
		return
	}
	used, err := s.session.Gateways.UsedAddresses(ctx, g.ID)
	if err != nil {
		s.unread(err, "reading the used addresses of edge gateway "+g.Name, "give the user the right to view it")
		return
	}
	taken := map[netip.Addr]bool{}
	for _, u := range used {
		taken[u.Address] = true
	}
	total := 0
	free := 0
	for _, uplink := range g.Uplinks {
		for _, subnet := range uplink.Subnets {
			t, f := count(subnet.Ranges, taken)
			total += t
			free += f
		}
	}
	if free == 0 {
		s.add(s.severity(), "release addresses, or let the provider give the gateway more",
			"edge gateway %s has no free address to outside of %d", g.Name, total)
		return
	}
	s.fact("%s has %d free addresses to outside", g.Name, free)
}

// manyAddresses is enough to be sure that there is one.
const manyAddresses = 1 << 12

// count returns how many addresses are in ranges, and how many of them are not taken, up to a bound.
func count(ranges []vcd.AddressRange, taken map[netip.Addr]bool) (total, free int) {
	for _, r := range ranges {
		for a := r.From; a.IsValid() && a.Compare(r.To) <= 0 && total < manyAddresses; a = a.Next() {
			total++
			if !taken[a] {
				free++
			}
		}
	}
	return total, free
}

// checkSpaces checks the IP Spaces that a gateway has addresses from.
func (s *survey) checkSpaces(ctx context.Context, g vcd.Gateway) {
	spaces, err := s.session.IPSpaces.Suggestions(ctx, g.ID)
	if err != nil {
		s.unread(err, "listing IP Spaces of edge gateway "+g.Name, "give the user the rights on IP Spaces")
		return
	}
	wished := s.ipSpace()
	if wished != "" {
		spaces = slices.DeleteFunc(spaces, func(x vcd.Suggestion) bool {
			return x.Space.Name != wished && x.Space.ID != wished
		})
	}
	if len(spaces) == 0 {
		if wished != "" {
			s.add(s.severity(), "correct ipSpace in the VCDCluster, or let the provider connect it",
				"IP Space %q gives no addresses to edge gateway %s", wished, g.Name)
			return
		}
		s.add(s.severity(), "let the provider connect one", "edge gateway %s has no IP Space", g.Name)
		return
	}
	if s.anyLeft(ctx, spaces) || s.lost != nil {
		return
	}
	s.add(s.severity(), "release floating IPs, or let the provider raise the quota or add ranges",
		"no IP Space of edge gateway %s has a floating IP left for the organization", g.Name)
}

func (s *survey) ipSpace() string {
	c := s.plan.Cluster
	if c == nil {
		return ""
	}
	if edge := c.Spec.Endpoint.EdgeGateway; edge != nil && edge.IPSpace != "" {
		return edge.IPSpace
	}
	return c.Spec.LoadBalancer.IPSpace
}

// anyLeft reports whether some IP Space has an address left, or may not be read.
func (s *survey) anyLeft(ctx context.Context, spaces []vcd.Suggestion) bool {
	for _, x := range spaces {
		if len(x.Unused) > 0 {
			return true
		}
		room, err := s.session.IPSpaces.Room(ctx, x.Space.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
			return true
		case err != nil:
			s.unread(err, "reading IP Space "+x.Space.Name, "give the user the rights on IP Spaces")
			return true
		case room > 0:
			return true
		}
	}
	return false
}
