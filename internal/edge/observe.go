// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// groupsAge is the maximum age of the list of service engine groups. The provider controls the groups, and virtual
// services that this process adds are counted locally.
const groupsAge = 10 * time.Minute

// Observe returns all objects of an owner on a gateway, given by its URN, and the other state that a plan depends on.
// An incomplete result is an error. Errors wrap [loadbalancer.ErrRefused] if a change is required first, such as a
// missing right, [loadbalancer.ErrBusy] if VCD throttles requests, and otherwise [loadbalancer.ErrUnknown].
func (d *Driver) Observe(ctx context.Context, gateway string, q lb.Query) (lb.Observed, error) {
	want := demand{maxAge: d.opts.MaxAge}
	if q.Fresh {
		want.after = d.next()
	}
	s, err := d.session(ctx)
	if err != nil {
		return lb.Observed{}, classified(err)
	}
	o := &observation{gateway: d.at(gateway), session: s, query: q, want: want}
	if err := o.all(ctx); err != nil {
		return lb.Observed{}, classified(err)
	}
	o.judge()
	return o.out, nil
}

// An observation fills one [lb.Observed].
type observation struct {
	gateway *gateway
	session *vcd.Session
	query   lb.Query
	want    demand
	out     lb.Observed
	// began means that all pools and port profiles of the owner are known without a list.
	began bool
}

// all observes the basic state and the requested facts.
func (o *observation) all(ctx context.Context) error {
	for _, x := range []struct {
		facts   lb.Facts
		observe func(context.Context) error
	}{
		{0, o.basics},
		{0, o.services},
		{0, o.pools},
		{0, o.sets},
		{0, o.claims},
		{lb.Forwardings, o.forwardings},
		{lb.Certificates, o.certificates},
		{lb.Firewall, o.firewall},
		{lb.Addresses, o.addresses},
		{lb.Hosts, o.hosts},
		{lb.EngineGroups, o.groups},
		{lb.FullPools, o.fullPools},
		{lb.FullSets, o.fullSets},
	} {
		if o.query.Facts.Has(x.facts) {
			if err := x.observe(ctx); err != nil {
				return err
			}
			o.out.Known |= x.facts
		}
	}
	if err := o.hidden(); err != nil {
		return err
	}
	return o.readPortion(ctx)
}

// hidden returns an error if objects may be overlooked because of a missing right.
func (o *observation) hidden() error {
	if err := o.gateway.rights.hides(false, lb.KindSet); err != nil {
		return err
	}
	for facts, kinds := range map[lb.Facts][]loadbalancer.Kind{
		lb.Forwardings:  {lb.KindRule, lb.KindProfile},
		lb.Certificates: {lb.KindCertificate},
		lb.Firewall:     {lb.KindFirewall},
	} {
		if !o.query.Facts.Has(facts) {
			continue
		}
		if err := o.gateway.rights.hides(facts == lb.Forwardings && o.query.Translated, kinds...); err != nil {
			return err
		}
	}
	return nil
}

// owned returns the marker of an object, and reports whether the object belongs to the owner.
func (o *observation) owned(kind loadbalancer.Kind, name, description string) (m lb.Marker, owned bool) {
	m, origin := lb.OwnerOf(o.query.Owner.Cluster, kind, name, description)
	if origin == lb.Foreign {
		if stray, ok := lb.StrayOf(o.query.Owner, cmp.Or(name, string(kind)), description); ok {
			o.out.Strays = append(o.out.Strays, stray)
		}
		return m, false
	}
	o.gateway.rights.markSeen(kind)
	switch {
	case m.Owner.Is(o.query.Owner):
		return m, true
	case origin == lb.OldName:
		return m, lb.Likely(o.query.Owner, m.Owner) && (m.Owner.Namespace == "" || m.Owner.Namespace == o.query.Owner.Namespace)
	}
	o.out.Others = o.out.Others || lb.OnGateway(kind) && !m.Owner.WholeCluster() && !m.Owner.IsEndpoint()
	return m, false
}

func (o *observation) basics(ctx context.Context) error {
	f, err := o.gateway.fact(ctx, o.session)
	o.out.Gateway.ID = o.gateway.id
	o.out.Gateway.Name = f.gateway.Name
	o.out.Gateway.UsesSpaces = len(f.spaces) > 0
	return err
}

func (o *observation) services(ctx context.Context) error {
	services, err := o.gateway.services.get(ctx, o.session, o.want)
	for _, vs := range services {
		m, owned := o.owned(lb.KindService, vs.Name, vs.Description)
		o.gateway.rights.infer(m, vs.Certificate, false)
		if owned {
			o.out.Services = append(o.out.Services, vs)
			continue
		}
		o.out.Taken = append(o.out.Taken, vs.Uses(vs.Name, m)...)
	}
	o.began = o.query.Begins && !o.query.Fresh && o.beganHere()
	return err
}

// beganHere reports whether the owner has no virtual service, or had none when it was first planned a moment ago. Then
// it has only those pools and port profiles that this process wrote since. A previous process that stopped between two
// writes may have left an object. If a new object has the same name, VCD refuses to create it. Otherwise, the leftover
// is found when the lists are read.
func (o *observation) beganHere() bool {
	now := o.gateway.driver.opts.Clock.Now()
	began := &o.gateway.began
	if len(o.out.Services) == 0 {
		began.Store(o.query.Owner, now)
		return true
	}
	at, ok := began.Load(o.query.Owner)
	if ok && now.Sub(at.(time.Time)) <= o.want.maxAge { //nolint:forcetypeassert // nothing else is stored
		return true
	}
	began.Delete(o.query.Owner)
	return false
}

func (o *observation) pools(ctx context.Context) error {
	pools, written := o.gateway.pools.written()
	var err error
	if !written || !o.began {
		pools, err = o.gateway.pools.get(ctx, o.session, o.want)
	}
	for _, p := range pools {
		m, owned := o.owned(lb.KindPool, p.Name, p.Description)
		o.gateway.rights.infer(m, lb.Ref{}, p.Hints.ByGroup && m.Owner.Cluster != "")
		if owned {
			o.out.Pools = append(o.out.Pools, o.gateway.details.pool(p))
		}
	}
	return err
}

// sets observes the IP sets of the whole cluster.
func (o *observation) sets(ctx context.Context) error {
	if o.query.OwnMembers {
		return nil
	}
	sets, err := o.gateway.sets.get(ctx, o.session, o.want)
	for _, set := range sets {
		m, _ := o.owned(lb.KindSet, set.Name, set.Description)
		if m.Owner.WholeCluster() && m.Owner.Cluster == o.query.Owner.Cluster && m.For(o.gateway.id) {
			set.Generation = o.gateway.generations.of(set.Name)
			o.out.Sets = append(o.out.Sets, o.gateway.details.set(set, o.gateway.driver.opts.MaxAge))
		}
	}
	return err
}

func (o *observation) claims(ctx context.Context) error {
	f, err := o.gateway.fact(ctx, o.session)
	if err != nil || len(f.spaces) == 0 {
		return err
	}
	claims, err := o.gateway.claims.get(ctx, o.session, o.want)
	if err != nil {
		return err
	}
	for _, c := range claims {
		o.owned(lb.KindAddress, "", c.Description)
	}
	o.out.Claims = claims
	o.out.ForeignClaims = o.gateway.refusals.disowned(o.query.Owner, claims)
	o.out.Taken = append(o.out.Taken, o.gateway.refusals.taken()...)
	return nil
}

// forwardings observes NAT rules, including the addresses that they use, and the profiles that they refer to.
func (o *observation) forwardings(ctx context.Context) error {
	rules, err := o.gateway.rules.get(ctx, o.session, o.want)
	if err != nil {
		return err
	}
	profiles, err := o.profiles(ctx, rules)
	protocols := map[string]loadbalancer.Protocol{}
	for _, p := range profiles {
		protocols[p.ID] = p.Protocol
		if _, owned := o.owned(lb.KindProfile, p.Name, p.Description); owned {
			o.out.Profiles = append(o.out.Profiles, p)
		}
	}
	for _, r := range rules {
		m, owned := o.owned(lb.KindRule, r.Name, r.Description)
		if owned && !r.Other {
			o.out.Rules = append(o.out.Rules, r)
			continue
		}
		o.out.Taken = append(o.out.Taken, r.Uses(m, protocols[r.Profile.ID])...)
	}
	return err
}

// profiles returns the port profiles of the owner, and those that rules refer to.
func (o *observation) profiles(ctx context.Context, rules []lb.Rule) ([]lb.Profile, error) {
	profiles, written := o.gateway.profiles.written()
	unknown := func(r lb.Rule) bool {
		return r.Profile.ID != "" &&
			!slices.ContainsFunc(profiles, func(p lb.Profile) bool { return p.ID == r.Profile.ID })
	}
	if written && o.began && !slices.ContainsFunc(rules, unknown) {
		return profiles, nil
	}
	return o.gateway.profiles.get(ctx, o.session, o.want)
}

// certificates observes the owner's certificates, and the unmarked ones, which Services refer to by alias.
func (o *observation) certificates(ctx context.Context) error {
	certificates, err := o.gateway.certificates.get(ctx, o.session, o.want)
	for _, c := range certificates {
		_, marked := lb.ParseMarker(c.Description)
		if _, owned := o.owned(lb.KindCertificate, c.Name, c.Description); owned || !marked {
			o.out.Certificates = append(o.out.Certificates, c)
		}
	}
	return err
}

func (o *observation) firewall(ctx context.Context) error {
	rules, err := o.gateway.firewall.get(ctx, o.session, o.want)
	for _, r := range rules {
		if _, owned := o.owned(lb.KindFirewall, r.Name, r.Description); owned {
			o.out.Firewall = append(o.out.Firewall, r)
		}
	}
	return err
}

// addresses observes the addresses that the gateway can use: its own, and those of IP Spaces.
func (o *observation) addresses(ctx context.Context) error {
	f, err := o.gateway.fact(ctx, o.session)
	if err != nil {
		return err
	}
	// An address that was freed manually is no longer used. This list must not be older than those of the objects.
	want := o.want
	want.after = max(want.after, o.gateway.services.since(), o.gateway.rules.since())
	o.out.Gateway.Used, err = o.gateway.used.get(ctx, o.session, want)
	o.out.Gateway.Ranges = ranges(f.gateway.Ranges())
	refusals := &o.gateway.refusals
	for _, space := range f.spaces {
		o.out.Gateway.Spaces = append(o.out.Gateway.Spaces, lb.Space{
			ID:     space.ID,
			Name:   space.Name,
			Ranges: ranges(space.Ranges),
			Free:   refusals.free(space, o.out.Claims, o.query.Subnet),
			Full:   refusals.isFull(space.ID),
		})
	}
	return err
}

func (o *observation) hosts(ctx context.Context) error {
	hosts, err := o.gateway.hosts.get(ctx, o.session, o.want)
	o.out.Taken = append(o.out.Taken, hosts...)
	return err
}

func (o *observation) groups(ctx context.Context) (err error) {
	want := o.want
	want.maxAge = max(want.maxAge, groupsAge)
	o.out.Gateway.Groups, err = o.gateway.groups.get(ctx, o.session, want)
	return err
}

// judge updates the states of all objects whose realization may fail. NAT rules have no state.
func (o *observation) judge() {
	repairs := &o.gateway.repairs
	for i := range o.out.Services {
		repairs.judge(&o.out.Services[i].Object)
	}
	for i := range o.out.Pools {
		repairs.judge(&o.out.Pools[i].Object)
	}
	for i := range o.out.Sets {
		repairs.judge(&o.out.Sets[i].Object)
	}
	for i := range o.out.Profiles {
		repairs.judge(&o.out.Profiles[i].Object)
	}
}
