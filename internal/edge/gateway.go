// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A gateway is the local state of an edge gateway: cached lists, and data that lists do not show.
type gateway struct {
	id     string
	gone   bool // proved to be gone: none of its lists are requested
	driver *Driver
	queue  writeQueue

	facts        *list[facts] // one item
	services     *list[lb.VirtualService]
	pools        *list[lb.Pool]
	sets         *list[lb.Set]
	claims       *list[lb.Claim]
	rules        *list[lb.Rule]
	profiles     *list[lb.Profile]
	certificates *list[lb.CertificateItem]
	firewall     *list[lb.FirewallRule]
	used         *list[lb.UsedAddress]
	groups       *list[lb.EngineGroup]
	hosts        *list[loadbalancer.Use]
	monitors     *list[lb.Object] // those with their own settings

	details     details
	refusals    refusals
	rights      rights
	repairs     repairs
	generations generations
	// allocated are the IDs of claims that this process allocated and did not mark yet.
	allocated sync.Map
	// began is the time when an endpoint without a virtual service was first planned by this process, by owner.
	began sync.Map
}

// facts are the settings of a gateway that the provider controls.
type facts struct {
	gateway  vcd.Gateway
	balancer vcd.BalancerSettings
	features vcd.Features
	spaces   []vcd.IPSpace // from which floating IPs can be allocated
}

// hasPlainUplink reports whether the gateway has addresses outside IP Spaces.
func (f facts) hasPlainUplink() bool {
	return slices.ContainsFunc(f.gateway.Uplinks, func(u vcd.Uplink) bool { return !u.UsesIPSpaces })
}

// at returns the local state of a gateway.
func (d *Driver) at(id string) *gateway {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, ok := d.gateways[id]
	if !ok {
		g = d.newGateway(id)
		d.gateways[id] = g
	}
	return g
}

func (d *Driver) newGateway(id string) *gateway {
	id, gone := strings.CutPrefix(id, goneGateway)
	g := &gateway{
		id:          id,
		gone:        gone,
		driver:      d,
		queue:       newWriteQueue(d.opts.MaxWaiting),
		details:     newDetails(d.opts),
		refusals:    newRefusals(d.opts.Clock),
		rights:      newRights(),
		repairs:     newRepairs(d.opts.Clock),
		generations: generations{bySet: map[string]uint64{}},
	}
	g.facts = &list[facts]{driver: d, id: func(facts) string { return "" }, read: g.readFacts}
	g.services = listOf(d, onGateway(g, g.readServices), func(x *lb.VirtualService) *lb.Object { return &x.Object })
	g.pools = listOf(d, onGateway(g, g.readPools), func(x *lb.Pool) *lb.Object { return &x.Object })
	g.sets = listOf(d, g.readSets, func(x *lb.Set) *lb.Object { return &x.Object })
	g.claims = listOf(d, g.readClaims,
		func(x *lb.Claim) *lb.Object { return &lb.Object{ID: x.ID, Description: x.Description} })
	g.rules = listOf(d, onGateway(g, g.readRules), func(x *lb.Rule) *lb.Object { return &x.Object })
	g.rules.alike = func(a, b lb.Rule) bool { // a new rule has no ID yet
		return a.Name == b.Name && (strings.HasPrefix(a.ID, unnamedRule) || strings.HasPrefix(b.ID, unnamedRule))
	}
	g.rules.idOf = ruleID
	g.profiles = listOf(d, g.readProfiles, func(x *lb.Profile) *lb.Object { return &x.Object })
	g.certificates = listOf(d, g.readCertificates, func(x *lb.CertificateItem) *lb.Object { return &x.Object })
	g.firewall = listOf(d, onGateway(g, g.readFirewall), func(x *lb.FirewallRule) *lb.Object { return &x.Object })
	g.used = &list[lb.UsedAddress]{
		driver: d,
		id:     func(x lb.UsedAddress) string { return x.Address.String() + x.Category },
		read:   onGateway(g, g.readUsed),
	}
	g.groups = listOf(d, onGateway(g, g.readGroups), func(x *lb.EngineGroup) *lb.Object { return &x.Object })
	g.monitors = listOf(d, onGateway(g, g.readMonitors), func(x *lb.Object) *lb.Object { return x })
	g.hosts = &list[loadbalancer.Use]{
		driver: d,
		id:     func(x loadbalancer.Use) string { return x.Address.String() + x.Name },
		read:   g.readHosts,
	}
	return g
}

const (
	// natRuleURN is the prefix of the URN of a NAT rule. All calls use its UUID instead.
	natRuleURN = "urn:vcloud:natRule:"
	// unnamedRule is the prefix of the provisional ID of a rule that this process created and that was not listed yet.
	// Its name follows.
	unnamedRule = "name:"
)

// ruleID returns the ID of a rule from the owner of the task that created it, or a provisional ID.
func ruleID(owner, name string) string {
	if id, isRule := strings.CutPrefix(owner, natRuleURN); isRule {
		return id
	}
	return unnamedRule + name // the owner is the gateway: VCD does not show the ID
}

// A reader reads a list from VCD.
type reader[T any] func(context.Context, *vcd.Session) ([]T, error)

// onGateway returns a reader for objects on a gateway. It reads nothing if the gateway is gone.
func onGateway[T any](g *gateway, read reader[T]) reader[T] {
	if g.gone {
		return func(context.Context, *vcd.Session) ([]T, error) { return nil, nil }
	}
	return read
}

// listOf returns a list of objects with IDs and names.
func listOf[T any](
	d *Driver, read reader[T], object func(*T) *lb.Object,
) *list[T] {
	return &list[T]{driver: d, id: func(x T) string { return object(&x).ID }, object: object, read: read}
}

func (g *gateway) readFacts(ctx context.Context, s *vcd.Session) ([]facts, error) {
	var f facts
	var err error
	if f.features, err = s.Features(ctx); err != nil {
		return nil, err
	}
	if g.gone {
		f.spaces, err = s.IPSpaces.Public(ctx)
		return []facts{f}, g.rights.tolerate(lb.KindAddress, err)
	}
	if f.gateway, err = s.Gateways.Gateway(ctx, g.id); err != nil {
		return nil, err
	}
	if f.balancer, err = s.Balancers.Settings(ctx, g.id); err != nil && !errors.Is(err, vcd.ErrForbidden) {
		return nil, err
	}
	if !f.gateway.UsesIPSpaces {
		return []facts{f}, nil
	}
	f.spaces, err = g.readSpaces(ctx, s)
	return []facts{f}, err
}

// readSpaces reads the public IP Spaces that VCD suggests for the gateway.
func (g *gateway) readSpaces(ctx context.Context, s *vcd.Session) ([]vcd.IPSpace, error) {
	suggestions, err := s.IPSpaces.Suggestions(ctx, g.id)
	if err != nil {
		return nil, err
	}
	var spaces []vcd.IPSpace
	for _, suggestion := range suggestions {
		space, err := s.IPSpaces.Space(ctx, suggestion.Space.ID)
		if err != nil {
			return nil, err
		}
		if space.Type == vcd.SpacePublic {
			spaces = append(spaces, space)
		}
	}
	return spaces, nil
}

// fact returns the facts, which rarely change.
func (g *gateway) fact(ctx context.Context, s *vcd.Session) (facts, error) {
	found, err := g.facts.get(ctx, s, demand{maxAge: g.driver.opts.FactsAge})
	if err != nil {
		return facts{}, err
	}
	if len(found) != 1 {
		return facts{}, fmt.Errorf("edge gateway %s: %w", g.id, vcd.ErrNotFound)
	}
	return found[0], nil
}

func (g *gateway) readServices(ctx context.Context, s *vcd.Session) ([]lb.VirtualService, error) {
	return converted(serviceOf)(s.Balancers.VirtualServices(ctx, g.id))
}

func (g *gateway) readPools(ctx context.Context, s *vcd.Session) ([]lb.Pool, error) {
	return converted(poolOf)(s.Balancers.Pools(ctx, g.id))
}

// readSets lists the IP sets. A user who may not see any is assumed to have created none, unless other objects show
// that some exist. For a gateway that is gone, only the sets in its VDC group remain.
func (g *gateway) readSets(ctx context.Context, s *vcd.Session) ([]lb.Set, error) {
	f, err := g.fact(ctx, s)
	if err != nil {
		return nil, err
	}
	sets, err := converted(setOf)(s.Firewall.IPSets(ctx, f.gateway.GroupOwner()))
	if errors.Is(err, vcd.ErrForbidden) {
		g.refusals.forbidSets()
	}
	if g.gone {
		sets = slices.DeleteFunc(sets,
			func(x lb.Set) bool { m, _ := lb.ParseMarker(x.Description); return m.Gateway == "" })
	}
	return sets, g.rights.tolerate(lb.KindSet, err)
}

func (g *gateway) readClaims(ctx context.Context, s *vcd.Session) ([]lb.Claim, error) {
	f, err := g.fact(ctx, s)
	if err != nil {
		return nil, err
	}
	var claims []lb.Claim
	for _, space := range f.spaces {
		allocated, err := s.IPSpaces.FloatingIPs(ctx, space.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range allocated {
			claims = append(claims, claimOf(a, ref(space.Ref)))
		}
	}
	return claims, nil
}

func (g *gateway) readRules(ctx context.Context, s *vcd.Session) ([]lb.Rule, error) {
	rules, err := converted(ruleOf)(s.NAT.Rules(ctx, g.id))
	return rules, g.rights.tolerate(lb.KindRule, err)
}

func (g *gateway) readProfiles(ctx context.Context, s *vcd.Session) ([]lb.Profile, error) {
	profiles, err := converted(profileOf)(s.NAT.PortProfiles(ctx))
	return profiles, g.rights.tolerate(lb.KindProfile, err)
}

func (g *gateway) readCertificates(ctx context.Context, s *vcd.Session) ([]lb.CertificateItem, error) {
	certificates, err := converted(certificateOf)(s.Balancers.Certificates(ctx))
	return certificates, g.rights.tolerate(lb.KindCertificate, err)
}

// readFirewall lists the firewall rules, if rules can be created individually.
func (g *gateway) readFirewall(ctx context.Context, s *vcd.Session) ([]lb.FirewallRule, error) {
	f, err := g.fact(ctx, s)
	if err != nil || !f.features.SingleFirewallRule {
		return nil, err
	}
	rules, err := converted(firewallOf)(s.Firewall.Rules(ctx, g.id))
	return rules, g.rights.tolerate(lb.KindFirewall, err)
}

// readMonitors lists the health monitors with their own settings, if VCD supports them.
func (g *gateway) readMonitors(ctx context.Context, s *vcd.Session) ([]lb.Object, error) {
	f, err := g.fact(ctx, s)
	if err != nil || !f.features.HealthMonitors {
		return nil, err
	}
	monitors, err := s.Balancers.HealthMonitors(ctx, g.id)
	monitors = slices.DeleteFunc(monitors, func(m vcd.HealthMonitor) bool { return m.SystemDefined })
	return converted(func(m vcd.HealthMonitor) lb.Object { return object(m.Ref, m.Description, "") })(monitors, err)
}

// readUsed lists the used addresses, unless all uplinks use IP Spaces, where allocations show which addresses are used.
func (g *gateway) readUsed(ctx context.Context, s *vcd.Session) ([]lb.UsedAddress, error) {
	f, err := g.fact(ctx, s)
	if err != nil || !f.hasPlainUplink() {
		return nil, err
	}
	return converted(func(u vcd.UsedAddress) lb.UsedAddress {
		return lb.UsedAddress{Address: u.Address, Category: u.Category}
	})(s.Gateways.UsedAddresses(ctx, g.id))
}

// readHosts lists the addresses of VMs and gateways inside the organization. It returns nothing if the user may not see
// networks.
func (g *gateway) readHosts(ctx context.Context, s *vcd.Session) ([]loadbalancer.Use, error) {
	hosts, err := s.Networks.HostsBehind(ctx, g.id)
	if errors.Is(err, vcd.ErrForbidden) {
		return nil, nil
	}
	return converted(func(h vcd.HostAddress) loadbalancer.Use {
		return loadbalancer.Use{Address: h.Address, Kind: lb.KindHost, Name: h.Host}
	})(hosts, err)
}

func (g *gateway) readGroups(ctx context.Context, s *vcd.Session) ([]lb.EngineGroup, error) {
	return converted(groupOf)(s.Balancers.EngineGroups(ctx, g.id))
}
