package edge

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Observe returns everything that an owner has on a gateway, given by its URN, and what else a plan for it depends on. It is
// complete, or an error: one that wraps [lb.ErrRefused] if something has to be changed first, such as a right that is missing,
// [lb.ErrBusy] if VCD wants less calls, and else [lb.ErrUnknown].
func (d *Driver) Observe(ctx context.Context, gateway string, q lb.Query) (lb.Observed, error) {
	want := demand{maxAge: d.opts.MaxAge}
	if q.Fresh {
		want.after = d.next()
	}
	s, err := d.session(ctx)
	if err != nil {
		return lb.Observed{}, classified(err)
	}
	l := &look{gateway: d.at(gateway), session: s, query: q, want: want}
	if err := l.all(ctx); err != nil {
		return lb.Observed{}, classified(err)
	}
	l.judge()
	l.editions()
	return l.out, nil
}

// A look is one observation.
type look struct {
	gateway *gateway
	session *vcd.Session
	query   lb.Query
	want    demand
	out     lb.Observed
}

// all observes what always is observed, and what was asked for.
func (l *look) all(ctx context.Context) error {
	looks := []struct {
		facts lb.Facts
		look  func(context.Context) error
	}{
		{0, l.basics},
		{0, l.services},
		{0, l.pools},
		{0, l.sets},
		{0, l.claims},
		{lb.Forwardings, l.forwardings},
		{lb.Certificates, l.certificates},
		{lb.Firewall, l.firewall},
		{lb.Addresses, l.addresses},
		{lb.EngineGroups, l.groups},
		{lb.FullPools, l.fullPools},
		{lb.FullSets, l.fullSets},
	}
	for _, x := range looks {
		if l.query.Facts.Has(x.facts) {
			if err := x.look(ctx); err != nil {
				return err
			}
			l.out.Known |= x.facts
		}
	}
	if err := l.hidden(); err != nil {
		return err
	}
	return l.roll(ctx)
}

// whose says whether an object is the owner's, and what its marker says.
func (l *look) whose(kind lb.Kind, name, description string) (m lb.Marker, ours bool) {
	m, origin := lb.OwnerOf(l.query.Owner.Cluster, kind, name, description)
	if origin == lb.Foreign {
		if stray, ok := lb.StrayOf(l.query.Owner, cmp.Or(name, string(kind)), description); ok {
			l.out.Strays = append(l.out.Strays, stray)
		}
		return m, false
	}
	l.gateway.see(kind)
	switch {
	case m.Owner.Is(l.query.Owner):
		return m, true
	case origin == lb.OldName:
		same := m.Owner.Name == l.query.Owner.Name
		return m, same && (m.Owner.Namespace == "" || m.Owner.Namespace == l.query.Owner.Namespace)
	}
	l.out.Others = l.out.Others || kind.OnGateway() && !m.Owner.WholeCluster()
	return m, false
}

func (l *look) basics(ctx context.Context) error {
	f, err := l.gateway.fact(ctx, l.session)
	l.out.Gateway.ID, l.out.Gateway.Name, l.out.Gateway.UsesSpaces = l.gateway.id, f.gateway.Name, len(f.spaces) > 0
	return err
}

func (l *look) services(ctx context.Context) error {
	services, err := l.gateway.services.get(ctx, l.session, l.want)
	for _, vs := range services {
		m, ours := l.whose(lb.KindService, vs.Name, vs.Description)
		l.gateway.infer(m, vs.Certificate, false)
		if ours {
			l.out.Services = append(l.out.Services, serviceOf(vs))
			continue
		}
		l.out.Taken = append(l.out.Taken, usesOfService(vs, m)...)
	}
	return err
}

func (l *look) pools(ctx context.Context) error {
	pools, err := l.gateway.pools.get(ctx, l.session, l.want)
	for _, p := range pools {
		m, ours := l.whose(lb.KindPool, p.Name, p.Description)
		l.gateway.infer(m, vcd.Ref{}, p.ByGroup && m.Owner.Cluster != "")
		if ours {
			l.out.Pools = append(l.out.Pools, l.gateway.poolAsKnown(p))
		}
	}
	return err
}

// sets keeps those of the whole cluster, whoever asks.
func (l *look) sets(ctx context.Context) error {
	sets, err := l.gateway.sets.get(ctx, l.session, l.want)
	for _, set := range sets {
		m, _ := l.whose(lb.KindSet, set.Name, set.Description)
		if m.Owner.WholeCluster() && m.Owner.Cluster == l.query.Owner.Cluster {
			l.out.Sets = append(l.out.Sets, l.gateway.setAsKnown(set))
		}
	}
	return err
}

func (l *look) claims(ctx context.Context) error {
	f, err := l.gateway.fact(ctx, l.session)
	if err != nil || len(f.spaces) == 0 {
		return err
	}
	claims, err := l.gateway.claims.get(ctx, l.session, l.want)
	for _, c := range claims {
		l.whose(lb.KindAddress, "", c.Description)
		l.out.Claims = append(l.out.Claims, claimOf(c))
	}
	l.out.Taken = append(l.out.Taken, l.gateway.elsewhere()...)
	return err
}

// forwardings are NAT rules, whose uses of addresses count, too, and the profiles they refer to.
func (l *look) forwardings(ctx context.Context) error {
	rules, err := l.gateway.rules.get(ctx, l.session, l.want)
	if err != nil {
		return err
	}
	profiles, err := l.gateway.profiles.get(ctx, l.session, l.want)
	byID := map[string]vcd.PortProfile{}
	for _, p := range profiles {
		byID[p.ID] = p
		if _, ours := l.whose(lb.KindProfile, p.Name, p.Description); ours {
			l.out.Profiles = append(l.out.Profiles, profileOf(p))
		}
	}
	for _, r := range rules {
		m, ours := l.whose(lb.KindRule, r.Name, r.Description)
		if ours && r.Type == "DNAT" {
			l.out.Rules = append(l.out.Rules, ruleOf(r))
			continue
		}
		l.out.Taken = append(l.out.Taken, usesOfRule(r, byID, m)...)
	}
	return err
}

// certificates keeps the owner's and those of nobody: of those, people name the aliases.
func (l *look) certificates(ctx context.Context) error {
	certificates, err := l.gateway.certificates.get(ctx, l.session, l.want)
	for _, c := range certificates {
		_, marked := lb.ParseMarker(c.Description)
		if _, ours := l.whose(lb.KindCertificate, c.Name, c.Description); ours || !marked {
			l.out.Certificates = append(l.out.Certificates, certificateOf(c))
		}
	}
	return err
}

func (l *look) firewall(ctx context.Context) error {
	rules, err := l.gateway.firewall.get(ctx, l.session, l.want)
	for _, r := range rules {
		if _, ours := l.whose(lb.KindFirewall, r.Name, r.Description); ours {
			l.out.Firewall = append(l.out.Firewall, firewallOf(r))
		}
	}
	return err
}

// addresses are those the gateway can use: its own, or those of IP Spaces.
func (l *look) addresses(ctx context.Context) error {
	f, err := l.gateway.fact(ctx, l.session)
	if err != nil {
		return err
	}
	// An address that somebody has freed by hand is not used: the list must not be older than those that show what there is.
	want := l.want
	want.after = max(want.after, l.gateway.services.since(), l.gateway.rules.since())
	used, err := l.gateway.used.get(ctx, l.session, want)
	for _, u := range used {
		l.out.Gateway.Used = append(l.out.Gateway.Used, lb.UsedAddress{Address: u.Address, Category: u.Category})
	}
	for _, uplink := range f.gateway.Uplinks {
		for _, subnet := range uplink.Subnets {
			if subnet.Enabled && !uplink.UsesIPSpaces {
				l.out.Gateway.Ranges = append(l.out.Gateway.Ranges, ranges(subnet.Ranges)...)
			}
		}
	}
	for _, space := range f.spaces {
		l.out.Gateway.Spaces = append(l.out.Gateway.Spaces, lb.Space{
			ID: space.ID, Name: space.Name, Ranges: ranges(space.Ranges), Free: l.gateway.free(space, l.out.Claims), Full: l.gateway.isFull(space.ID),
		})
	}
	return err
}

func ranges(list []vcd.AddressRange) []lb.Range {
	out := make([]lb.Range, len(list))
	for i, r := range list {
		out[i] = lb.Range{First: r.From, Last: r.To}
	}
	return out
}

// groupsAge is how old the list of service engine groups may be: it is the provider's, and what is put on them here is counted here.
const groupsAge = 10 * time.Minute

func (l *look) groups(ctx context.Context) error {
	want := l.want
	want.maxAge = max(want.maxAge, groupsAge)
	groups, err := l.gateway.groups.get(ctx, l.session, want)
	for _, g := range groups {
		l.out.Gateway.Groups = append(l.out.Gateway.Groups, lb.EngineGroup{ID: g.ID, Name: g.Name, Deployed: g.Deployed, Max: g.Max})
	}
	return err
}

// doubtAge is how old what the provider sets up may be when a load balancer cannot be for it.
const doubtAge = time.Minute

// Doubt lets what the provider set up be read anew: the addresses of a gateway, what its load balancer allows, its service engine groups. It
// says whether anything will be: what was read within the last minute is believed.
func (d *Driver) Doubt(gateway string) bool {
	g := d.at(gateway)
	facts, groups := g.facts.expire(doubtAge), g.groups.expire(doubtAge)
	return facts || groups
}

// Owners returns whoever of a cluster has something on a gateway, read anew: Services by their markers, those known from names of
// cloud provider interface 1.6.1 only, and, for what all share, the cluster itself. Errors are those of Observe.
func (d *Driver) Owners(ctx context.Context, gateway, cluster string) ([]lb.Owner, error) {
	s, err := d.session(ctx)
	if err != nil {
		return nil, classified(err)
	}
	c := census{cluster: cluster, gateway: d.at(gateway)}
	if err := c.take(ctx, s, demand{maxAge: d.opts.MaxAge, after: d.next()}); err != nil {
		return nil, classified(err)
	}
	slices.SortFunc(c.owners, lb.Owner.Compare)
	return c.owners, nil
}

// A census finds the owners of a cluster's objects.
type census struct {
	cluster string
	gateway *gateway
	owners  []lb.Owner
}

func (c *census) take(ctx context.Context, s *vcd.Session, want demand) error {
	g := c.gateway
	return first(
		func() error {
			return count(ctx, s, want, g.services, func(x vcd.VirtualService) {
				g.infer(c.add(lb.KindService, x.Name, x.Description), x.Certificate, false)
			})
		},
		func() error {
			return count(ctx, s, want, g.pools, func(x vcd.PoolSummary) {
				m := c.add(lb.KindPool, x.Name, x.Description)
				g.infer(m, vcd.Ref{}, x.ByGroup && m.Owner.Cluster != "")
			})
		},
		func() error {
			return count(ctx, s, want, g.sets, func(x vcd.IPSet) { c.add(lb.KindSet, x.Name, x.Description) })
		},
		func() error {
			return count(ctx, s, want, g.claims, func(x claim) { c.add(lb.KindAddress, "", x.Description) })
		},
		func() error {
			return count(ctx, s, want, g.rules, func(x vcd.NATRule) { c.add(lb.KindRule, x.Name, x.Description) })
		},
		func() error {
			return count(ctx, s, want, g.profiles, func(x vcd.PortProfile) { c.add(lb.KindProfile, x.Name, x.Description) })
		},
		func() error {
			return count(ctx, s, want, g.certificates, func(x vcd.Certificate) { c.add(lb.KindCertificate, x.Name, x.Description) })
		},
		func() error {
			return count(ctx, s, want, g.firewall, func(x vcd.FirewallRule) { c.add(lb.KindFirewall, x.Name, x.Description) })
		},
		func() error {
			return g.hides(false, lb.KindSet, lb.KindRule, lb.KindProfile, lb.KindCertificate, lb.KindFirewall)
		},
	)
}

// first runs functions until one fails.
func first(functions ...func() error) error {
	for _, f := range functions {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func count[T any](ctx context.Context, s *vcd.Session, want demand, p *part[T], f func(T)) error {
	items, err := p.get(ctx, s, want)
	for _, item := range items {
		f(item)
	}
	return err
}

// add counts the owner of an object, and returns what its marker says; nothing if it is not the cluster's.
func (c *census) add(kind lb.Kind, name, description string) lb.Marker {
	m, origin := lb.OwnerOf(c.cluster, kind, name, description)
	if origin == lb.Foreign {
		return lb.Marker{}
	}
	c.gateway.see(kind)
	for i, known := range c.owners {
		if known.Is(m.Owner) {
			if known.Name == "" {
				c.owners[i] = m.Owner // a longer marker leaves the names out
			}
			return m
		}
	}
	c.owners = append(c.owners, m.Owner)
	return m
}

// maxMembers is how many members VCD takes for one pool.
const maxMembers = 100

// Capabilities returns what the gateway, the agreed API version and the rights of the user allow, as far as is known. Errors are those
// of Observe.
func (d *Driver) Capabilities(ctx context.Context, gateway string) (lb.Capabilities, error) {
	s, err := d.session(ctx)
	if err != nil {
		return lb.Capabilities{}, classified(err)
	}
	g := d.at(gateway)
	f, err := g.fact(ctx, s)
	if err != nil {
		return lb.Capabilities{}, classified(err)
	}
	return lb.Capabilities{
		SharedVIP: f.features.SharedVIP, MemberSets: f.features.MemberGroups && g.setsAllowed(), IPv6: f.features.IPv6VIP,
		PreserveClientIP: f.features.TransparentMode && f.balancer.Transparent, L4TLS: f.balancer.Premium || !f.balancer.Enabled,
		SourceRanges: f.features.SingleFirewallRule && d.opts.SourceRanges, MaxMembers: maxMembers,
	}, nil
}

func (g *gateway) setsAllowed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.driver.opts.Clock.Now().After(g.noSets)
}
