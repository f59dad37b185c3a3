package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A gateway is what is known of an edge gateway.
type gateway struct {
	id     string
	driver *Driver
	turn   chan struct{} // holds one token: whoever has it writes

	facts        *part[facts] // one item
	services     *part[vcd.VirtualService]
	pools        *part[vcd.PoolSummary]
	sets         *part[vcd.IPSet]
	claims       *part[claim]
	rules        *part[vcd.NATRule]
	profiles     *part[vcd.PortProfile]
	certificates *part[vcd.Certificate]
	firewall     *part[vcd.FirewallRule]
	used         *part[vcd.UsedAddress]
	groups       *part[vcd.EngineGroup]

	mu       sync.Mutex
	waiting  int                      // for the turn
	noSets   time.Time                // until then, IP sets are not tried: they were forbidden
	refused  map[netip.Addr]time.Time // floating IPs that somebody else has, and until when that is believed
	full     map[string]time.Time     // IP Spaces of which the organisation may have no more, by id, and until when that is believed
	pooled   map[string]readPool      // pools that were read in full, by id
	setRead  map[string]read[lb.Set]  // IP sets that were read in full, by id
	hinted   map[string]lb.Hints      // what lists hinted at when pools had their turn last, by id
	rolled   time.Time                // when pools and sets were last read in full in turn
	rollNext int                      // where the next turn begins
	seen     map[lb.Kind]bool         // kinds of which a cluster has, or had, something: then a missing right is no proof of absence
	repairs  map[string]repair        // what VCD had given up and was written again, by id
	editions map[string]uint64        // of the wishes by which IP sets were written, by name
	hidden   map[lb.Kind]error        // kinds that the user may not look at, as the last try said
}

// A read is something that was read in full, and when.
type read[T any] struct {
	value T
	at    time.Time
}

// A readPool is a pool that was read in full, and what lists hinted at then.
type readPool struct {
	read[lb.Pool]

	hints lb.Hints
}

// facts are what the provider of a gateway set up.
type facts struct {
	gateway  vcd.Gateway
	balancer vcd.BalancerSettings
	features vcd.Features
	spaces   []vcd.IPSpace // that floating IPs can be had from
}

// A claim is a floating IP with its space.
type claim struct {
	vcd.FloatingIP

	space vcd.Ref
}

// at returns what is known of a gateway.
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
	g := &gateway{
		id: id, driver: d, turn: make(chan struct{}, 1), refused: map[netip.Addr]time.Time{}, full: map[string]time.Time{},
		pooled: map[string]readPool{}, setRead: map[string]read[lb.Set]{}, seen: map[lb.Kind]bool{}, hidden: map[lb.Kind]error{},
		repairs: map[string]repair{}, editions: map[string]uint64{},
	}
	g.turn <- struct{}{}
	g.facts = &part[facts]{driver: d, id: func(facts) string { return "" }, read: g.readFacts}
	g.services = &part[vcd.VirtualService]{driver: d, id: func(x vcd.VirtualService) string { return x.ID }, read: g.readServices}
	g.pools = &part[vcd.PoolSummary]{driver: d, id: func(x vcd.PoolSummary) string { return x.ID }, read: g.readPools}
	g.sets = &part[vcd.IPSet]{driver: d, id: func(x vcd.IPSet) string { return x.ID }, read: g.readSets}
	g.claims = &part[claim]{driver: d, id: func(x claim) string { return x.ID }, read: g.readClaims}
	g.rules = &part[vcd.NATRule]{driver: d, id: func(x vcd.NATRule) string { return x.ID }, read: g.readRules}
	g.rules.alike = func(a, b vcd.NATRule) bool { // a rule that was just made has no id yet
		return a.Name == b.Name && (strings.HasPrefix(a.ID, unnamedRule) || strings.HasPrefix(b.ID, unnamedRule))
	}
	g.profiles = &part[vcd.PortProfile]{driver: d, id: func(x vcd.PortProfile) string { return x.ID }, read: g.readProfiles}
	g.certificates = &part[vcd.Certificate]{driver: d, id: func(x vcd.Certificate) string { return x.ID }, read: g.readCertificates}
	g.firewall = &part[vcd.FirewallRule]{driver: d, id: func(x vcd.FirewallRule) string { return x.ID }, read: g.readFirewall}
	g.used = &part[vcd.UsedAddress]{driver: d, id: func(x vcd.UsedAddress) string { return x.Address.String() + x.Category }, read: g.readUsed}
	g.groups = &part[vcd.EngineGroup]{driver: d, id: func(x vcd.EngineGroup) string { return x.ID }, read: g.readGroups}
	return g
}

func (g *gateway) readFacts(ctx context.Context, s *vcd.Session) ([]facts, error) {
	var f facts
	var err error
	if f.features, err = s.Features(ctx); err != nil {
		return nil, err
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
	suggestions, err := s.IPSpaces.Suggestions(ctx, g.id)
	if err != nil {
		return nil, err
	}
	for _, suggestion := range suggestions {
		space, err := s.IPSpaces.Space(ctx, suggestion.Space.ID)
		if err != nil {
			return nil, err
		}
		if space.Type == vcd.SpacePublic {
			f.spaces = append(f.spaces, space)
		}
	}
	return []facts{f}, nil
}

// fact returns the facts, which change seldom.
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

func (g *gateway) readServices(ctx context.Context, s *vcd.Session) ([]vcd.VirtualService, error) {
	return s.Balancers.VirtualServices(ctx, g.id)
}

func (g *gateway) readPools(ctx context.Context, s *vcd.Session) ([]vcd.PoolSummary, error) {
	return s.Balancers.PoolSummaries(ctx, g.id)
}

// readSets lists the IP sets; who may not see any has made none, unless something says that there are some.
func (g *gateway) readSets(ctx context.Context, s *vcd.Session) ([]vcd.IPSet, error) {
	sets, err := s.Firewall.IPSets(ctx, g.id)
	if errors.Is(err, vcd.ErrForbidden) {
		g.forbidSets()
	}
	return sets, g.tolerate(lb.KindSet, err)
}

// forbidSets remembers that IP sets are forbidden.
func (g *gateway) forbidSets() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noSets = g.driver.opts.Clock.Now().Add(refusalAge)
}

func (g *gateway) readClaims(ctx context.Context, s *vcd.Session) ([]claim, error) {
	f, err := g.fact(ctx, s)
	if err != nil {
		return nil, err
	}
	var claims []claim
	for _, space := range f.spaces {
		allocated, err := s.IPSpaces.FloatingIPs(ctx, space.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range allocated {
			claims = append(claims, claim{FloatingIP: a, space: space.Ref})
		}
	}
	return claims, nil
}

func (g *gateway) readRules(ctx context.Context, s *vcd.Session) ([]vcd.NATRule, error) {
	rules, err := s.NAT.Rules(ctx, g.id)
	return rules, g.tolerate(lb.KindRule, err)
}

func (g *gateway) readProfiles(ctx context.Context, s *vcd.Session) ([]vcd.PortProfile, error) {
	profiles, err := s.NAT.PortProfiles(ctx)
	return profiles, g.tolerate(lb.KindProfile, err)
}

func (g *gateway) readCertificates(ctx context.Context, s *vcd.Session) ([]vcd.Certificate, error) {
	certificates, err := s.Balancers.Certificates(ctx)
	return certificates, g.tolerate(lb.KindCertificate, err)
}

// readFirewall lists the rules of the firewall where such as ours can be.
func (g *gateway) readFirewall(ctx context.Context, s *vcd.Session) ([]vcd.FirewallRule, error) {
	f, err := g.fact(ctx, s)
	if err != nil || !f.features.SingleFirewallRule {
		return nil, err
	}
	rules, err := s.Firewall.Rules(ctx, g.id)
	return rules, g.tolerate(lb.KindFirewall, err)
}

// readUsed lists the used addresses, unless all uplinks have those of IP Spaces: the allocations of those say what is used.
func (g *gateway) readUsed(ctx context.Context, s *vcd.Session) ([]vcd.UsedAddress, error) {
	f, err := g.fact(ctx, s)
	if err != nil || !slices.ContainsFunc(f.gateway.Uplinks, func(u vcd.Uplink) bool { return !u.UsesIPSpaces }) {
		return nil, err
	}
	return s.Gateways.UsedAddresses(ctx, g.id)
}

func (g *gateway) readGroups(ctx context.Context, s *vcd.Session) ([]vcd.EngineGroup, error) {
	return s.Balancers.EngineGroups(ctx, g.id)
}
