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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// reprove stores again what is stored on a Service without a valid digest, as an older build, or one that had another
// key, has left it: as far as the cloud confirms it. The rest is removed.
func (l *LoadBalancers) reprove(ctx context.Context, s *corev1.Service) error {
	stored := l.opts.Defaults.Stored(s)
	known := l.state.get(s.UID)
	if known.intent != "" || len(known.standing) > 0 || !unproved(stored) || l.opts.Defaults.Asked(s).DryRun {
		return nil // the cache may be older than what was written
	}
	n, err := l.confirmed(ctx, s, stored)
	if err != nil {
		return err
	}
	names := l.opts.Defaults.Dialect.Names()
	for name, removed := range map[string]bool{
		names.Intent:   dropped(stored.Unproved.Intent, words(n.addresses)),
		names.Standing: dropped(stored.Unproved.Standing, n.locations),
	} {
		if removed {
			l.events.notices(s, "stored "+name, []plan.Finding{{
				Reason: service.BadAnnotation,
				Message: fmt.Sprintf(
					"the annotation %s, or a part of it, was not written for this Service by the cloud controller "+
						"manager, and nothing of the Service confirms it: it is removed", name),
			}})
		}
	}
	return l.store(ctx, s, n)
}

func unproved(s service.Stored) bool { return len(s.Unproved.Intent)+len(s.Unproved.Standing) > 0 }

// dropped reports whether one of some values is not among those that were kept.
func dropped(values, kept []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(kept, v) })
}

// confirmed returns what is stored on a Service, without the unproved locations where it has nothing and the unproved
// addresses that it has nowhere. Where it claims to be at unproved locations it may also be at any other. A location
// of the configuration that does not answer stays, as it is searched again later, unless an address may be there.
func (l *LoadBalancers) confirmed(ctx context.Context, s *corev1.Service, stored service.Stored) (note, error) {
	n := note{addresses: append([]netip.Addr{}, stored.Intent...), locations: append([]string{}, stored.Standing...)}
	var silent error
	for _, id := range l.candidates(ctx, stored) {
		stands, objects, err := l.standsAt(ctx, s, id)
		switch {
		case err != nil && !l.locations.hasID(id):
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
func seen(objects []plan.Object, addresses []string) []netip.Addr {
	var out []netip.Addr
	for _, o := range objects {
		out = append(out, slices.DeleteFunc(slices.Clone(o.Addresses),
			func(a netip.Addr) bool { return !slices.Contains(addresses, a.String()) })...)
	}
	return out
}

// candidates returns the locations where a Service may be.
func (l *LoadBalancers) candidates(ctx context.Context, stored service.Stored) []string {
	claimed := slices.DeleteFunc(l.locations.resolveKnown(stored.Unproved.Standing),
		func(id string) bool { return !l.locations.possible(id) })
	out := slices.Concat(stored.Standing, claimed)
	if len(stored.Standing) == 0 {
		ids, err := l.locations.all(ctx)
		if out = append(out, ids...); err != nil {
			out = append(out, l.locations.unfound()...)
		}
	}
	return distinct(out)
}

// standsAt reports whether something of a Service may be at a location, and returns what is seen there. Of locations
// that may not be seen, those of the configuration count, and all of a Service whose clients were given an address.
func (l *LoadBalancers) standsAt(ctx context.Context, s *corev1.Service, id string) (bool, []plan.Object, error) {
	if _, lost := unfoundName(id); lost {
		return len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	p, err := l.planAbsent(ctx, s, id, PlanRequest{})
	if errors.Is(err, plan.ErrRefused) {
		return l.locations.hasID(id) || len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	return len(p.Status.Objects) > 0, p.Status.Objects, err
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
