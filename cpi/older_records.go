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

// A prover verifies the annotations of Services in which older builds stored their records.
type prover struct {
	planner   *planner
	records   *records
	locations *locations
	defaults  service.Defaults
	states    *perService[serviceState]
	events    *eventDeduper
}

// takeOver records the contents of the annotations of a Service, as far as the cloud confirms them, and removes the
// annotations.
func (p *prover) takeOver(ctx context.Context, s *corev1.Service) error {
	stored := p.defaults.Stored(s)
	if stored.Older.IsEmpty() {
		p.states.change(s.UID, func(state *serviceState) { state.olderRead = false })
		return nil
	}
	if p.states.get(s.UID).olderRead || p.defaults.Settings(s).DryRun {
		return nil // The cache may still show removed annotations.
	}
	n, err := p.confirmed(ctx, s, stored)
	if err != nil {
		return err
	}
	names := p.defaults.Dialect.Names()
	for name, removed := range map[string]bool{
		names.OlderAddresses: dropped(stored.Older.Addresses, words(n.addresses)),
		names.OlderLocations: dropped(stored.Older.Locations, n.locations),
	} {
		if removed {
			p.events.notices(s, "older "+name, []loadbalancer.Finding{{
				Reason: service.InvalidAnnotation,
				Message: fmt.Sprintf(
					"the annotation %s, or a part of it, was not written by the cloud controller manager for this Service and cannot be verified: it was removed", name),
			}})
		}
	}
	if err := p.records.write(ctx, s, n); err != nil {
		return err
	}
	return p.records.removeOlder(ctx, s)
}

// dropped reports whether any of the values is not among the kept ones.
func dropped(values, kept []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(kept, v) })
}

// confirmed returns the verified record of a Service: its existing record, the locations from its annotations where it
// has objects, and the addresses from its annotations that these objects have. Without recorded locations it may have
// objects at any location. A location of the configuration that does not respond is kept, because it is searched again
// later, unless it may have an address from the annotations.
func (p *prover) confirmed(ctx context.Context, s *corev1.Service, stored service.Stored) (recordChange, error) {
	n := recordChange{addresses: append([]netip.Addr{}, stored.Addresses...), locations: append([]string{}, stored.Locations...)}
	var silent error
	for _, id := range p.candidates(ctx, stored) {
		stands, objects, err := p.mayOccupy(ctx, s, id)
		switch {
		case err != nil && !p.locations.hasID(id):
			return n, fmt.Errorf("verifying the annotations of the Service: %w", err)
		case err != nil && slices.Contains(stored.Older.Locations, id):
			silent = fmt.Errorf("verifying the addresses in an annotation of the Service: %w", err)
		}
		if stands || err != nil {
			n.locations = append(n.locations, id)
		}
		n.addresses = append(n.addresses, seen(objects, stored.Older.Addresses)...)
	}
	n.addresses = distinct(n.addresses)
	n.locations = distinct(n.locations)
	if silent != nil && dropped(stored.Older.Addresses, words(n.addresses)) {
		return n, silent
	}
	klog.FromContext(ctx).Info("Verified the annotations of a Service", "service", klog.KObj(s),
		"addresses", n.addresses, "locations", n.locations)
	return n, nil
}

// seen returns those of the given addresses that the objects have.
func seen(objects []loadbalancer.Object, addresses []string) []netip.Addr {
	var out []netip.Addr
	for _, o := range objects {
		out = append(out, slices.DeleteFunc(slices.Clone(o.Addresses),
			func(a netip.Addr) bool { return !slices.Contains(addresses, a.String()) })...)
	}
	return out
}

// candidates returns the locations where a Service may have objects.
func (p *prover) candidates(ctx context.Context, stored service.Stored) []string {
	claimed := slices.DeleteFunc(p.locations.resolveKnown(stored.Older.Locations),
		func(id string) bool { return !p.locations.possible(id) })
	out := slices.Concat(stored.Locations, claimed)
	if len(stored.Locations) == 0 {
		ids, err := p.locations.all(ctx)
		if out = append(out, ids...); err != nil {
			out = append(out, p.locations.unresolved()...)
		}
	}
	return distinct(out)
}

// mayOccupy reports whether a Service may have objects at a location, and returns the visible ones. A location that is
// not visible counts if it is in the configuration, or if the Service has a published address.
func (p *prover) mayOccupy(ctx context.Context, s *corev1.Service, id string) (bool, []loadbalancer.Object, error) {
	if _, lost := unresolvedName(id); lost {
		return len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	nothing, err := p.planner.planAbsent(ctx, s, id, PlanRequest{})
	if errors.Is(err, loadbalancer.ErrRefused) {
		return p.locations.hasID(id) || len(s.Status.LoadBalancer.Ingress) > 0, nil, nil
	}
	return len(nothing.Status.Objects) > 0, nothing.Status.Objects, err
}

// distinct returns each value once, in the order of first occurrence.
func distinct[T comparable](values []T) []T {
	out := []T{}
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
