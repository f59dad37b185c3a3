// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkGateways checks the edge gateways on which a cluster creates load balancers. If c is nil, it checks them for
// Services.
func checkGateways(ctx context.Context, in *vcd.Session, c *infrav1.VCDCluster, on networks) findings {
	uses, f := usesOfServices(ctx, in.Gateways, c, on.gateways)
	endpoint, found, ofEndpoint := useOfEndpoint(ctx, in.Gateways, c, on.byName)
	f.join(ofEndpoint)
	if found {
		uses = append(uses, endpoint)
	}
	for _, u := range uses {
		gateway, err := in.Gateways.Gateway(ctx, u.gateway.ID)
		if err != nil {
			f.unread(err, "reading edge gateway "+u.gateway.Name, "grant the user the right to view edge gateways")
			continue
		}
		f.join(checkGateway(ctx, in, gateway, u))
	}
	return f
}

// A use is the purpose of an edge gateway: Services, or the endpoint of the control plane.
type use struct {
	gateway  vcd.Ref
	severity Severity // severity of findings that prevent load balancers
	field    string   // field of the VCDCluster that contains the settings below

	engineGroup string
	ipSpace     string
	addresses   []string // requested addresses of the endpoint; empty: any
	mayHave     bool     // the endpoint may already use the addresses
}

// usesOfServices returns the edge gateways of Services: those of the networks, and additional ones in the spec.
func usesOfServices(ctx context.Context, in *vcd.Gateways, c *infrav1.VCDCluster, ofNetworks []vcd.Ref) ([]use, findings) {
	var f findings
	if c != nil && !checks.CreatesBalancers(c) {
		return nil, f
	}
	of := use{severity: Warning, field: "spec.loadBalancer"}
	if c != nil {
		of.engineGroup = c.Spec.LoadBalancer.ServiceEngineGroup
		of.ipSpace = c.Spec.LoadBalancer.IPSpace
	}
	var uses []use
	for _, ref := range ofNetworks {
		of.gateway = ref
		uses = append(uses, of)
	}
	if c == nil {
		return uses, f
	}
	for _, further := range c.Spec.LoadBalancer.EdgeGateways {
		if further.EdgeGateway == "" {
			continue
		}
		found, err := in.FindGateway(ctx, further.EdgeGateway)
		if err != nil {
			f.unreadGateway(err, further.EdgeGateway, "spec.loadBalancer.edgeGateways")
			continue
		}
		of.gateway = found
		of.ipSpace = further.IPSpace
		uses = append(uses, of)
	}
	return uses, f
}

// useOfEndpoint returns the edge gateway of the endpoint: the one in the spec, or the one of the cluster's network. It
// reports whether there is one.
func useOfEndpoint(ctx context.Context, in *vcd.Gateways, c *infrav1.VCDCluster, networks map[string]vcd.Network) (
	of use, found bool, f findings,
) {
	if c == nil || c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointEdgeGateway {
		return use{}, false, f
	}
	of = use{
		gateway:  networks[c.Spec.OVDCNetwork].EdgeGateway,
		severity: Problem,
		field:    "spec.controlPlaneLoadBalancer.edgeGateway",
		mayHave:  c.Spec.InfraID != "",
	}
	if host := c.Spec.ControlPlaneEndpoint.Host; host != "" {
		of.addresses = append(of.addresses, host)
	}
	if edge := c.Spec.ControlPlaneLoadBalancer.EdgeGateway; edge != nil {
		of.engineGroup = edge.ServiceEngineGroup
		of.ipSpace = edge.IPSpace
		if edge.SecondaryAddress != "" {
			of.addresses = append(of.addresses, edge.SecondaryAddress)
		}
		if edge.Name != "" {
			var err error
			if of.gateway, err = in.FindGateway(ctx, edge.Name); err != nil {
				f.unreadGateway(err, edge.Name, of.field+".name")
			}
			return of, err == nil, f
		}
	}
	missing := checks.EndpointRouted(c.Spec.OVDCNetwork, of.gateway)
	f.found(Problem, missing)
	return of, missing == nil, f
}

// unreadGateway adds a finding about an edge gateway, named in a field, that could not be looked up.
func (f *findings) unreadGateway(err error, name, field string) {
	f.unread(err, "looking up edge gateway "+name, "correct "+field+" of the VCDCluster")
}

// checkGateway checks that a gateway supports load balancers for a use.
func checkGateway(ctx context.Context, in *vcd.Session, g vcd.Gateway, u use) findings {
	var f findings
	if g.Status == vcd.RealizationFailed {
		f.problem("ask the provider to repair it", "VCD could not create edge gateway %s as it is configured", g.Name)
		return f
	}
	settings, err := in.Balancers.Settings(ctx, g.ID)
	switch {
	case err != nil:
		f.unread(err, "reading the load balancer of edge gateway "+g.Name, "grant the user the right to view it")
		return f
	case !settings.Enabled && u.severity == Problem:
		f.problem("ask the provider to enable NSX Advanced Load Balancer on it, or set another spec.controlPlaneLoadBalancer.type",
			"edge gateway %s has no load balancer, which the endpoint requires", g.Name)
		return f
	case !settings.Enabled:
		f.warn("ask the provider to enable NSX Advanced Load Balancer on it, or set spec.loadBalancer.mode of the VCDCluster to Disabled",
			"edge gateway %s has no load balancer: Services of type LoadBalancer get no address", g.Name)
		return f
	}
	f.join(checkEngines(ctx, in.Balancers, g, u))
	if g.UsesIPSpaces {
		f.join(checkSpaces(ctx, in.IPSpaces, g, u))
	} else {
		f.join(checkAddresses(ctx, in.Gateways, g, u))
	}
	return f
}

// checkEngines checks that a service engine group has capacity for a virtual service.
func checkEngines(ctx context.Context, in *vcd.Balancers, g vcd.Gateway, u use) findings {
	var f findings
	groups, err := in.EngineGroups(ctx, g.ID)
	if err != nil {
		f.unread(err, "listing service engine groups of edge gateway "+g.Name, "grant the user the right to view them")
		return f
	}
	all := make([]lb.EngineGroup, 0, len(groups))
	for _, group := range groups {
		all = append(all, lb.EngineGroup{
			Object:   lb.Object{ID: group.ID, Name: group.Name},
			Deployed: group.Deployed,
			Max:      group.Max,
		})
	}
	switch full, shortage := lb.ChooseEngineGroup(all, u.engineGroup); shortage {
	case lb.GroupNotAssigned:
		f.add(u.severity, "correct "+u.field+".serviceEngineGroup of the VCDCluster, or ask the provider to assign the group", "service engine group %q is not assigned to edge gateway %s", u.engineGroup, g.Name)
	case lb.NoGroupAssigned:
		f.add(u.severity, "ask the provider to assign one", "edge gateway %s has no service engine group", g.Name)
	case lb.AllGroupsFull:
		f.add(u.severity, "delete virtual services, or ask the provider to raise the limit or assign another group",
			"service engine group %s of edge gateway %s has reached its limit of %d virtual services", full.Name, g.Name, full.Max)
	case lb.NoShortage:
	}
	return f
}

// checkAddresses checks that a gateway has a free address for a load balancer, or that the requested addresses can be
// used.
func checkAddresses(ctx context.Context, in *vcd.Gateways, g vcd.Gateway, u use) findings {
	var f findings
	used, err := in.UsedAddresses(ctx, g.ID)
	if err != nil {
		f.unread(err, "reading the used addresses of edge gateway "+g.Name, "grant the user the right to view it")
		return f
	}
	taken := map[netip.Addr]bool{}
	for _, x := range used {
		taken[x.Address] = true
	}
	ranges := g.Ranges()
	if len(u.addresses) > 0 {
		return checkRequested(g.Name, u, ranges, taken)
	}
	total, free := count(ranges, taken)
	if free == 0 {
		f.add(u.severity, "release addresses, or ask the provider to assign more to the gateway",
			"edge gateway %s has no free external address of %d", g.Name, total)
		return f
	}
	f.fact("%s has %d free external addresses", g.Name, free)
	return f
}

// checkRequested checks the requested addresses of the endpoint. It skips invalid addresses, which checkManifest
// reports.
func checkRequested(gateway string, u use, ranges []vcd.AddressRange, taken map[netip.Addr]bool) findings {
	var f findings
	for _, text := range u.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		within := slices.ContainsFunc(ranges, func(r vcd.AddressRange) bool { return r.Contains(address) })
		switch {
		case !within:
			f.add(u.severity, "correct spec.controlPlaneEndpoint of the VCDCluster, or ask the provider to assign the address to the gateway", "address %s of the endpoint does not belong to edge gateway %s", address, gateway)
		case taken[address] && !u.mayHave:
			f.add(u.severity, "set another address in spec.controlPlaneEndpoint of the VCDCluster, or release it",
				"address %s of the endpoint is in use on edge gateway %s", address, gateway)
		}
	}
	return f
}

// maxCountedAddresses limits the count of addresses. It is large enough to find a free one.
const maxCountedAddresses = 1 << 12

// count returns the number of addresses in ranges, and the number of free ones, up to maxCountedAddresses.
func count(ranges []vcd.AddressRange, taken map[netip.Addr]bool) (total, free int) {
	for _, r := range ranges {
		for a := r.From; a.IsValid() && a.Compare(r.To) <= 0 && total < maxCountedAddresses; a = a.Next() {
			total++
			if !taken[a] {
				free++
			}
		}
	}
	return total, free
}

// checkSpaces checks the IP Spaces that provide addresses to a gateway.
func checkSpaces(ctx context.Context, in *vcd.IPSpaces, g vcd.Gateway, u use) findings {
	var f findings
	spaces, err := in.Suggestions(ctx, g.ID)
	if err != nil {
		f.unread(err, "listing IP Spaces of edge gateway "+g.Name, "grant the user the rights on IP Spaces")
		return f
	}
	requested := u.ipSpace
	if requested != "" {
		spaces = slices.DeleteFunc(spaces, func(x vcd.Suggestion) bool {
			return x.Space.Name != requested && x.Space.ID != requested
		})
	}
	if len(spaces) == 0 {
		if requested != "" {
			f.add(u.severity, "correct "+u.field+".ipSpace of the VCDCluster, or ask the provider to connect it",
				"IP Space %q provides no addresses to edge gateway %s", requested, g.Name)
			return f
		}
		f.add(u.severity, "ask the provider to connect one", "edge gateway %s has no IP Space", g.Name)
		return f
	}
	left, f := anyFree(ctx, in, spaces)
	if !left {
		f.add(u.severity, "release floating IPs, or ask the provider to raise the quota or add ranges",
			"no IP Space of edge gateway %s has a free floating IP for the organization", g.Name)
	}
	return f
}

// anyFree reports whether any IP Space has a free address or cannot be read.
func anyFree(ctx context.Context, in *vcd.IPSpaces, spaces []vcd.Suggestion) (bool, findings) {
	var f findings
	for _, x := range spaces {
		if len(x.Unused) > 0 {
			return true, f
		}
		room, err := in.Room(ctx, x.Space.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden):
			return true, f
		case err != nil:
			f.unread(err, "reading IP Space "+x.Space.Name, "grant the user the rights on IP Spaces")
			return true, f
		case room > 0:
			return true, f
		}
	}
	return false, f
}
