// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// PurgeOptions select what to remove.
type PurgeOptions struct {
	Cluster string // its ID
	// Only limits the removal to owners for which it returns true. Nil means no limit.
	Only func(loadbalancer.Owner) bool
	// Gone is set if the gateway, given by its URN, is proved to be gone. Objects on it were deleted with it, and the
	// cluster's objects in the organization are removed.
	Gone bool
	// NAT is set if load balancers may be behind DNAT rules ([PlanOptions.NAT]).
	NAT bool
	// Thorough also removes health monitors if nothing else of the cluster is left. They outlive pools that a user deleted.
	Thorough bool
	// Before is called before each step. Its error ends the purge. Nil disables it.
	Before func(ctx context.Context, owner loadbalancer.Owner, step lb.Step) error
}

// Purge removes all objects of a cluster from a gateway. It returns nil once nothing is left. Errors wrap
// [loadbalancer.ErrBusy], [loadbalancer.ErrRefused] or [loadbalancer.ErrUnknown].
func (d *Driver) Purge(ctx context.Context, gateway string, opts PurgeOptions) error {
	if opts.Gone {
		gateway = goneGateway + gateway
	}
	return purge{PurgeOptions: opts, driver: d, gateway: gateway}.run(ctx)
}

// goneGateway is the prefix, before the URN, of the name of a gateway that is proved to be gone. None of its lists are
// requested.
const goneGateway = "gone:"

// A purge removes the objects on one gateway.
type purge struct {
	PurgeOptions

	driver  *Driver
	gateway string
}

func (p purge) run(ctx context.Context) error {
	hadServices := false
	for range maxRounds {
		owners, err := p.driver.Owners(ctx, p.gateway, p.Cluster)
		if err != nil {
			return err
		}
		if p.Only != nil {
			owners = slices.DeleteFunc(owners, func(o loadbalancer.Owner) bool { return !p.Only(o) })
		}
		if len(owners) == 0 && (p.Thorough || hadServices) {
			if err := p.removeMonitors(ctx); err != nil {
				return err
			}
		}
		if len(owners) == 0 {
			return p.verify(ctx)
		}
		hadServices = hadServices || slices.ContainsFunc(owners, isService)
		slices.Reverse(owners) // objects that all Services share are removed last
		steps := 0
		for _, owner := range owners {
			n, err := p.remove(ctx, owner)
			if err != nil {
				return err
			}
			steps += n
		}
		if steps == 0 {
			return fmt.Errorf("%w: VCD is still working on %s", loadbalancer.ErrBusy, owners[0])
		}
	}
	return fmt.Errorf("%w: objects still remain", loadbalancer.ErrUnknown)
}

func isService(o loadbalancer.Owner) bool { return !o.WholeCluster() && !o.IsEndpoint() }

// removeMonitors removes the health monitors whose pools are gone.
func (p purge) removeMonitors(ctx context.Context) error {
	s, err := p.driver.session(ctx)
	if err != nil {
		return classified(err)
	}
	g := p.driver.at(p.gateway)
	monitors, err := g.monitors.get(ctx, s, demand{maxAge: p.driver.opts.MaxAge, after: p.driver.next()})
	if err != nil {
		return classified(err)
	}
	release, err := g.queue.acquire(ctx)
	if err != nil {
		return classified(err)
	}
	defer release()
	w := writer{
		gateway: g,
		session: s,
	}
	for _, m := range monitors {
		marker, ok := lb.ParseMarker(m.Description)
		if !ok || marker.Owner.Cluster != p.Cluster || p.Only != nil && !p.Only(marker.Owner) {
			continue
		}
		step := lb.Step{
			Verb: lb.Delete,
			Kind: lb.KindMonitor,
			Name: m.Name,
			ID:   m.ID,
		}
		if p.Before != nil {
			if err := p.Before(ctx, marker.Owner, step); err != nil {
				return err
			}
		}
		g.monitors.invalidate()
		if err := deleteMonitor(ctx, w, m.ID); err != nil {
			return classified(fmt.Errorf("%s: %w", step, err))
		}
	}
	return nil
}

// verify returns an error if an empty list may be due to a missing right, because only DNAT rules may be left.
func (p purge) verify(ctx context.Context) error {
	if !p.NAT || p.Gone {
		return nil
	}
	_, err := p.driver.Observe(ctx, p.gateway,
		lb.Query{Owner: loadbalancer.Owner{Cluster: p.Cluster}, Facts: lb.Forwardings, Translated: true})
	return err
}

// remove runs the steps that remove an owner's objects, and returns their number.
func (p purge) remove(ctx context.Context, owner loadbalancer.Owner) (int, error) {
	nothing := lb.Desired{Desired: loadbalancer.Desired{
		Owner:  owner,
		Absent: true,
	}}
	plan, err := p.driver.plan(ctx, p.gateway, nothing, PlanOptions{Fresh: true, NAT: p.NAT && !p.Gone})
	if err != nil {
		return 0, err
	}
	if len(plan.Refusals) > 0 {
		return 0, fmt.Errorf("%w: %s: %s", loadbalancer.ErrRefused, owner, plan.Refusals[0].Message)
	}
	for _, planned := range plan.Steps {
		step, err := ownStep(planned)
		if err != nil {
			return 0, err
		}
		if p.Before != nil {
			if err := p.Before(ctx, owner, step); err != nil {
				return 0, err
			}
		}
		if err := p.driver.Run(ctx, p.gateway, step); err != nil {
			return 0, err
		}
	}
	return len(plan.Steps), nil
}

// Owners returns the owners of all objects of a cluster on a gateway, freshly read. These are Services according to
// their markers, Services that are only known from names of cloud provider interface 1.6.1, and the cluster itself for
// shared objects. Errors are those of Observe.
func (d *Driver) Owners(ctx context.Context, gateway, cluster string) ([]loadbalancer.Owner, error) {
	c := census{cluster: cluster, gateway: d.at(gateway)}
	if err := d.scan(ctx, gateway, allKinds, c.add); err != nil {
		return nil, err
	}
	err := c.gateway.rights.hides(false, lb.KindSet, lb.KindRule, lb.KindProfile, lb.KindCertificate, lb.KindFirewall)
	if err != nil {
		return nil, classified(err)
	}
	slices.SortFunc(c.owners, loadbalancer.Owner.Compare)
	return c.owners, nil
}

// Remains returns the kind and name of all visible objects of a cluster on a gateway, freshly read and sorted. Errors
// are those of Observe.
func (d *Driver) Remains(ctx context.Context, gateway, cluster string) ([]string, error) {
	var found []string
	err := d.scan(ctx, gateway, allKinds, func(kind loadbalancer.Kind, o lb.Object, _ any) {
		if _, origin := lb.OwnerOf(cluster, kind, o.Name, o.Description); origin != lb.Foreign {
			found = append(found, string(kind)+" "+cmp.Or(o.Name, o.ID))
		}
	})
	slices.Sort(found)
	return found, err
}

// Existing returns the visible objects of some kinds on a gateway, of all owners, freshly read. Objects with addresses
// are also returned once per address. Errors are those of Observe, also if objects of a kind are not visible.
func (d *Driver) Existing(ctx context.Context, gateway string, kinds []loadbalancer.Kind) ([]loadbalancer.Object, error) {
	var out []loadbalancer.Object
	err := d.scan(ctx, gateway, kinds, func(kind loadbalancer.Kind, o lb.Object, x any) {
		var addresses []netip.Addr
		switch x := x.(type) {
		case lb.VirtualService:
			addresses = x.VIPs
		case lb.Rule:
			addresses = []netip.Addr{x.External}
		}
		out = append(out, loadbalancer.Object{Kind: kind, ID: o.ID, Name: o.Name})
		for _, a := range addresses {
			out = append(out, loadbalancer.Object{Kind: kind, ID: o.ID, Name: o.Name, Addresses: []netip.Addr{a}})
		}
	})
	if err == nil {
		err = d.at(gateway).rights.hides(true, kinds...)
	}
	if err != nil {
		return nil, classified(err)
	}
	return out, nil
}

var allKinds = []loadbalancer.Kind{
	lb.KindService, lb.KindPool, lb.KindSet, lb.KindAddress, lb.KindRule, lb.KindProfile, lb.KindCertificate,
	lb.KindFirewall,
}

// scan calls a function with each object of some kinds, freshly read.
func (d *Driver) scan(ctx context.Context, gateway string, kinds []loadbalancer.Kind, f func(loadbalancer.Kind, lb.Object, any)) error {
	s, err := d.session(ctx)
	if err != nil {
		return classified(err)
	}
	g := d.at(gateway)
	want := demand{maxAge: d.opts.MaxAge, after: d.next()}
	for _, kind := range kinds {
		if err := scanners(g)[kind](ctx, s, want, f); err != nil {
			return classified(err)
		}
	}
	return nil
}

// A scanner calls a function with each object of one kind.
type scanner func(context.Context, *vcd.Session, demand, func(loadbalancer.Kind, lb.Object, any)) error

func scanners(g *gateway) map[loadbalancer.Kind]scanner {
	return map[loadbalancer.Kind]scanner{
		lb.KindService:     scannerOf(lb.KindService, g.services),
		lb.KindPool:        scannerOf(lb.KindPool, g.pools),
		lb.KindSet:         scannerOf(lb.KindSet, g.sets),
		lb.KindAddress:     scannerOf(lb.KindAddress, g.claims),
		lb.KindRule:        scannerOf(lb.KindRule, g.rules),
		lb.KindProfile:     scannerOf(lb.KindProfile, g.profiles),
		lb.KindCertificate: scannerOf(lb.KindCertificate, g.certificates),
		lb.KindFirewall:    scannerOf(lb.KindFirewall, g.firewall),
		lb.KindMonitor:     scannerOf(lb.KindMonitor, g.monitors),
	}
}

func scannerOf[T any](kind loadbalancer.Kind, l *list[T]) scanner {
	return func(ctx context.Context, s *vcd.Session, want demand, f func(loadbalancer.Kind, lb.Object, any)) error {
		items, err := l.get(ctx, s, want)
		for _, item := range items {
			f(kind, *l.object(&item), item)
		}
		return err
	}
}

// A census collects the owners of a cluster's objects.
type census struct {
	cluster string
	gateway *gateway
	owners  []loadbalancer.Owner
}

// add adds the owner of an object, and infers from the object which other objects exist.
func (c *census) add(kind loadbalancer.Kind, o lb.Object, x any) {
	m, origin := lb.OwnerOf(c.cluster, kind, o.Name, o.Description)
	if origin == lb.Foreign || origin == lb.OldName && !lb.NamesProve(c.cluster) || !m.For(c.gateway.id) {
		return
	}
	c.gateway.rights.markSeen(kind)
	switch x := x.(type) {
	case lb.VirtualService:
		c.gateway.rights.infer(m, x.Certificate, false)
	case lb.Pool:
		c.gateway.rights.infer(m, lb.Ref{}, x.Hints.ByGroup)
	}
	for i, known := range c.owners {
		if known.Is(m.Owner) {
			if known.Name == "" {
				c.owners[i] = m.Owner // a longer marker omits the names
			}
			return
		}
	}
	c.owners = append(c.owners, m.Owner)
}
