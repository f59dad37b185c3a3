// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A prover confirms what is stored on Services without a valid digest.
type prover struct {
	planner   *planner
	records   *records
	locations *locations
	defaults  service.Defaults
	states    *perService[serviceState]
	events    *eventDeduper
}

// reprove stores again what is stored on a Service without a valid digest, as an older build, or one that had another
// key, has left it: as far as the cloud confirms it. The rest is removed.
func (p *prover) reprove(ctx context.Context, s *corev1.Service) error {
	stored := p.defaults.Stored(s)
	known := p.states.get(s.UID)
	if known.intent != "" || len(known.standing) > 0 || !unproved(stored) || p.defaults.Asked(s).DryRun {
		return nil // the cache may be older than what was written
	}
	n, err := p.confirmed(ctx, s, stored)
	if err != nil {
		return err
	}
	names := p.defaults.Dialect.Names()
	for name, removed := range map[string]bool{
		names.Intent:   dropped(stored.Unproved.Intent, words(n.addresses)),
		names.Standing: dropped(stored.Unproved.Standing, n.locations),
	} {
		if removed {
			p.events.notices(s, "stored "+name, []loadbalancer.Finding{{
				Reason: service.BadAnnotation,
				Message: fmt.Sprintf(
					"the annotation %s, or a part of it, was not written for this Service by the cloud controller "+
						"manager, and nothing of the Service confirms it: it is removed", name),
			}})
		}
	}
	return p.records.store(ctx, s, n)
}

func unproved(s service.Stored) bool { return len(s.Unproved.Intent)+len(s.Unproved.Standing) > 0 }

// dropped reports whether one of some values is not among those that were kept.
func dropped(values, kept []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(kept, v) })
}

// confirmed returns what is stored on a Service, without the unproved locations where it has nothing and the unproved
// addresses that it has nowhere. Where it claims to be at unproved locations it may also be at any other. A location
// of the configuration that does not answer stays, as it is searched again later, unless an address may be there.
func (p *prover) confirmed(ctx context.Context, s *corev1.Service, stored service.Stored) (note, error) {
	n := note{addresses: append([]netip.Addr{}, stored.Intent...), locations: append([]string{}, stored.Standing...)}
	var silent error
	for _, id := range p.candidates(ctx, stored) {
		stands, objects, err := p.standsAt(ctx, s, id)
		switch {
		case err != nil && !p.locations.hasID(id):
			return n, fmt.Errorf("confirming what is stored on the Service: %w", err)
		case err != nil && slices.Contains(stored.Unproved.Standing, id):
			silent = fmt.Errorf("confirming the addresses stored on the Service: %w", err)
		}
		if stands || err != nil {
			n.locations = append(n.locations, id)
		}
		n.addresses = append(n.addresses, seen(objects, stored.Unproved.Intent)...)
	}
	n.addresses = distinct(n.addresses)
	n.locations = distinct(n.locations)
	if silent != nil && dropped(stored.Unproved.Intent, words(n.addresses)) {
		return n, silent
	}
	klog.FromContext(ctx).Info("Confirmed what is stored on a Service", "service", klog.KObj(s),
		"addresses", n.addresses, "locations", n.locations)
	return n, nil
}

// seen returns those of some addresses that objects have.
func seen(objects []loadbalancer.Object, addresses []string) []netip.Addr {
	var out []netip.Addr
	for _, o := range objects {
		out = append(out, slices.DeleteFunc(slices.Clone(o.Addresses),
			func(a netip.Addr) bool { return !slices.Contains(addresses, a.String()) })...)
	}
	return out
}

// candidates returns the locations where a Service may be.
func (p *prover) candidates(ctx context.Context, stored service.Stored) []string {
	claimed := slices.DeleteFunc(p.locations.resolveKnown(stored.Unproved.Standing),
		func(id string) bool { return !p.locations.possible(id) })
	out := slices.Concat(stored.Standing, claimed)
	if len(stored.Standing) == 0 {
		ids, err := p.locations.all(ctx)
		if out = append(out, ids...); err != nil {
			out = append(out, p.locations.unfound()...)
		}
	}
	return distinct(out)
}

// standsAt reports whether something of a Service may be at a location, and returns what is seen there. Of locations
// that may not be seen, those of the configuration count, and all of a Service whose clients were given an address.
func (p *prover) standsAt(ctx context.Context, s *corev1.Service, id string) (bool, []loadbalancer.Object, error) {
	if _, lost := unfoundName(id); lost {
		return len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	nothing, err := p.planner.planAbsent(ctx, s, id, PlanRequest{})
	if errors.Is(err, loadbalancer.ErrRefused) {
		return p.locations.hasID(id) || len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	return len(nothing.Status.Objects) > 0, nothing.Status.Objects, err
}

// distinct returns each value once, in the order of their first occurrence.
func distinct[T comparable](values []T) []T {
	out := []T{}
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
