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

// checkGateways checks the edge gateways that load balancers are made on.
func checkGateways(ctx context.Context, s *survey) {
	uses := s.usesOfServices(ctx)
	if endpoint, ok := s.useOfEndpoint(ctx); ok {
		uses = append(uses, endpoint)
	}
	for _, u := range uses {
		gateway, err := s.session.Gateways.Gateway(ctx, u.gateway.ID)
		if err != nil {
			s.unread(err, "reading edge gateway "+u.gateway.Name, "give the user the right to view edge gateways")
			continue
		}
		s.checkGateway(ctx, gateway, u)
	}
}

// A use is what an edge gateway is for: Services, or the endpoint of the control plane.
type use struct {
	gateway  vcd.Ref
	severity Severity // of what keeps load balancers from being made
	field    string   // of the VCDCluster, with the settings below

	engineGroup string
	ipSpace     string
	addresses   []string // that the endpoint is to have; none: any
}

// usesOfServices returns the edge gateways of Services: those of the networks, and further ones. Without a cluster there
// may be Services.
func (s *survey) usesOfServices(ctx context.Context) []use {
	c := s.plan.Cluster
	if c != nil && !createsBalancers(c) {
		return nil
	}
	of := use{severity: Warning, field: "spec.loadBalancer"}
	if c != nil {
		of.engineGroup = c.Spec.LoadBalancer.ServiceEngineGroup
		of.ipSpace = c.Spec.LoadBalancer.IPSpace
	}
	var uses []use
	for _, ref := range s.gateways {
		of.gateway = ref
		uses = append(uses, of)
	}
	if c == nil {
		return uses
	}
	for _, further := range c.Spec.LoadBalancer.Gateways {
		if further.EdgeGateway == "" {
			continue
		}
		found, ok := s.findGateway(ctx, further.EdgeGateway, "spec.loadBalancer.gateways")
		if ok {
			of.gateway = found
			of.ipSpace = further.IPSpace
			uses = append(uses, of)
		}
	}
	return uses
}

// useOfEndpoint returns the edge gateway of the endpoint: its own, or that of the network of the cluster.
func (s *survey) useOfEndpoint(ctx context.Context) (use, bool) {
	c := s.plan.Cluster
	if c == nil || c.Spec.Endpoint.Type != infrav1.EndpointEdgeGateway {
		return use{}, false
	}
	of := use{
		gateway:  s.networks[c.Spec.OVDCNetwork].EdgeGateway,
		severity: Problem,
		field:    "spec.endpoint.edgeGateway",
	}
	if edge := c.Spec.Endpoint.EdgeGateway; edge != nil {
		of.engineGroup = edge.ServiceEngineGroup
		of.ipSpace = edge.IPSpace
		of.addresses = edge.Addresses
		if edge.Gateway != "" {
			found, ok := s.findGateway(ctx, edge.Gateway, of.field+".gateway")
			of.gateway = found
			return of, ok
		}
	}
	if of.gateway.ID == "" {
		s.problem("set spec.endpoint.edgeGateway.gateway of the VCDCluster, or connect the network to an edge gateway",
			"network %s is not connected to an edge gateway, which the endpoint needs", c.Spec.OVDCNetwork)
		return of, false
	}
	return of, true
}

func (s *survey) findGateway(ctx context.Context, name, field string) (vcd.Ref, bool) {
	found, err := s.session.Gateways.FindGateway(ctx, name)
	if err != nil {
		s.unread(err, "looking up edge gateway "+name, "correct "+field+" of the VCDCluster")
	}
	return found, err == nil
}

func (s *survey) checkGateway(ctx context.Context, g vcd.Gateway, u use) {
	if g.Status == vcd.RealizationFailed {
		s.problem("let the provider repair it", "VCD could not create edge gateway %s as it is configured", g.Name)
		return
	}
	settings, err := s.session.Balancers.Settings(ctx, g.ID)
	switch {
	case err != nil:
		s.unread(err, "reading the load balancer of edge gateway "+g.Name, "give the user the right to view it")
		return
	case !settings.Enabled && u.severity == Problem:
		s.problem("let the provider enable NSX Advanced Load Balancer on it, or choose another spec.endpoint.type",
			"edge gateway %s has no load balancer, which the endpoint needs", g.Name)
		return
	case !settings.Enabled:
		s.warn("let the provider enable NSX Advanced Load Balancer on it, or set "+
			"spec.loadBalancer.mode of the VCDCluster to Disabled",
			"edge gateway %s has no load balancer: Services of type LoadBalancer get no address", g.Name)
		return
	}
	s.checkEngines(ctx, g, u)
	s.checkOutside(ctx, g, u)
}

// checkEngines checks that a service engine group has room.
func (s *survey) checkEngines(ctx context.Context, g vcd.Gateway, u use) {
	groups, err := s.session.Balancers.EngineGroups(ctx, g.ID)
	if err != nil {
		s.unread(err, "listing service engine groups of edge gateway "+g.Name, "give the user the right to view them")
		return
	}
	wished := u.engineGroup
	if wished != "" {
		groups = slices.DeleteFunc(groups, func(x vcd.EngineGroup) bool { return x.Name != wished && x.ID != wished })
	}
	switch {
	case len(groups) == 0 && wished != "":
		s.add(u.severity, "correct "+u.field+".serviceEngineGroup of the VCDCluster, or let the provider "+
			"assign the group", "service engine group %q is not assigned to edge gateway %s", wished, g.Name)
	case len(groups) == 0:
		s.add(u.severity, "let the provider assign one", "edge gateway %s has no service engine group", g.Name)
	case !slices.ContainsFunc(groups, func(x vcd.EngineGroup) bool { return x.Max == 0 || x.Deployed < x.Max }):
		s.add(u.severity, "delete virtual services, or let the provider raise the limit or assign another group",
			"service engine group %s of edge gateway %s has all of its %d virtual services", groups[0].Name, g.Name,
			groups[0].Max)
	}
}

// checkOutside checks that there is an address for a load balancer, or that those that it is to have can be used.
func (s *survey) checkOutside(ctx context.Context, g vcd.Gateway, u use) {
	if g.UsesIPSpaces {
		s.checkSpaces(ctx, g, u)
		return
	}
	used, err := s.session.Gateways.UsedAddresses(ctx, g.ID)
	if err != nil {
		s.unread(err, "reading the used addresses of edge gateway "+g.Name, "give the user the right to view it")
		return
	}
	taken := map[netip.Addr]bool{}
	for _, x := range used {
		taken[x.Address] = true
	}
	var ranges []vcd.AddressRange
	for _, uplink := range g.Uplinks {
		for _, subnet := range uplink.Subnets {
			ranges = append(ranges, subnet.Ranges...)
		}
	}
	if len(u.addresses) > 0 {
		s.checkRequested(g, u, ranges, taken)
		return
	}
	total, free := count(ranges, taken)
	if free == 0 {
		s.add(u.severity, "release addresses, or let the provider give the gateway more",
			"edge gateway %s has no free address to outside of %d", g.Name, total)
		return
	}
	s.fact("%s has %d free addresses to outside", g.Name, free)
}

// checkRequested checks the addresses that the endpoint is to have. Those that are none were reported with the manifest.
func (s *survey) checkRequested(g vcd.Gateway, u use, ranges []vcd.AddressRange, taken map[netip.Addr]bool) {
	for _, text := range u.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		within := slices.ContainsFunc(ranges, func(r vcd.AddressRange) bool {
			return r.From.Compare(address) <= 0 && address.Compare(r.To) <= 0
		})
		switch {
		case !within:
			s.add(u.severity, "correct "+u.field+".addresses of the VCDCluster, or let the provider give the gateway the "+
				"address", "address %s of the endpoint is none of edge gateway %s", address, g.Name)
		case taken[address] && s.plan.Cluster.Spec.InfraID == "":
			s.add(u.severity, "choose another in "+u.field+".addresses of the VCDCluster, or release it",
				"address %s of the endpoint is in use on edge gateway %s", address, g.Name)
		}
	}
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
func (s *survey) checkSpaces(ctx context.Context, g vcd.Gateway, u use) {
	spaces, err := s.session.IPSpaces.Suggestions(ctx, g.ID)
	if err != nil {
		s.unread(err, "listing IP Spaces of edge gateway "+g.Name, "give the user the rights on IP Spaces")
		return
	}
	wished := u.ipSpace
	if wished != "" {
		spaces = slices.DeleteFunc(spaces, func(x vcd.Suggestion) bool {
			return x.Space.Name != wished && x.Space.ID != wished
		})
	}
	if len(spaces) == 0 {
		if wished != "" {
			s.add(u.severity, "correct "+u.field+".ipSpace of the VCDCluster, or let the provider connect it",
				"IP Space %q gives no addresses to edge gateway %s", wished, g.Name)
			return
		}
		s.add(u.severity, "let the provider connect one", "edge gateway %s has no IP Space", g.Name)
		return
	}
	if s.anyLeft(ctx, spaces) || s.lost != nil {
		return
	}
	s.add(u.severity, "release floating IPs, or let the provider raise the quota or add ranges",
		"no IP Space of edge gateway %s has a floating IP left for the organization", g.Name)
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
