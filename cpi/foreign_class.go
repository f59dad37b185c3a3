// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A foreignClasses removes the load balancers of Services whose class now belongs to another implementation. The
// service controller of Kubernetes does not report a Service whose class changed while this process was not running: it
// ignores Services with a class until they are deleted.
type foreignClasses struct {
	planner *planner
	records *records
	finder  *finder
	queues  *queues
	states  *perService[serviceState]
	events  *eventDeduper
	remove  func(*corev1.Service) removal
	forget  func(*corev1.Service) // drops the state of a Service whose objects are all removed
}

func (f foreignClasses) release(ctx context.Context) {
	log := klog.FromContext(ctx)
	all, err := f.records.services.List(labels.Everything())
	if err != nil {
		log.Error(err, "Cannot list Services")
		return
	}
	if err := f.records.store.load(ctx); err != nil {
		log.Error(err, "Cannot release the load balancers of Services whose class changed")
		return
	}
	for _, s := range all {
		if ctx.Err() != nil || !f.wasOurs(s) {
			continue
		}
		if err := f.releaseOne(ctx, s); err != nil {
			log.Error(err, "Cannot release the load balancer of a Service whose class changed", "service",
				klog.KObj(s))
		}
	}
}

// wasOurs reports whether a Service belongs to another implementation now and belonged to this one before, according to
// its record. An annotation of an older build may come from another process, so it counts only once an address was
// published.
func (f foreignClasses) wasOurs(s *corev1.Service) bool {
	if s == nil {
		return false
	}
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.Spec.LoadBalancerClass == nil ||
		s.DeletionTimestamp != nil {
		return false
	}
	stored := f.planner.defaults.Stored(s)
	if len(stored.Locations) > 0 {
		return true
	}
	return len(stored.Older.Locations) > 0 && len(s.Status.LoadBalancer.Ingress) > 0 &&
		f.states.get(s.UID).foreignLocations != s.Annotations[f.planner.defaults.Dialect.Names().OlderLocations]
}

// releaseOne removes the objects of a Service, unless one of its addresses is still published, because then no other
// implementation serves it yet. Another process with the same cluster ID may serve the new class.
func (f foreignClasses) releaseOne(ctx context.Context, s *corev1.Service) error {
	unlock, ok := f.queues.services.try(string(s.UID))
	if !ok {
		return nil
	}
	defer unlock()
	if s = f.records.cached(s); !f.wasOurs(s) {
		return nil // it changed in the meantime
	}
	locations, lost := f.finder.occupied(ctx, s)
	recorded := len(f.records.locations(s)) > 0
	anything := false
	var seen []string
	for _, location := range locations {
		stands, address, err := f.publishedAt(ctx, s, location)
		anything = anything || stands
		switch {
		case err != nil:
			lost = errors.Join(lost, err)
		case address.IsValid():
			f.events.notices(s, "class", []loadbalancer.Finding{{
				Reason:  reasonOrphaned,
				Message: fmt.Sprintf("the class of the Service changed, but its status still has the previous address %s: the previous load balancer is removed once the new implementation has published another address", address),
			}})
			return nil
		default:
			seen = append(seen, location)
		}
	}
	if err := f.remove(s).run(ctx, seen, lost); err != nil {
		return err
	}
	if !recorded && !anything { // another process, with another cluster ID, wrote the annotation
		f.states.change(s.UID, func(state *serviceState) {
			state.foreignLocations = s.Annotations[f.planner.defaults.Dialect.Names().OlderLocations]
		})
		return nil
	}
	defer f.forget(s)
	return f.records.forget(ctx, s)
}

// publishedAt reports whether a Service has objects at a location, and returns the published address that it has there.
// It also returns the address if the requested hostname was published instead, and the zero value if nothing is
// published.
func (f foreignClasses) publishedAt(ctx context.Context, s *corev1.Service, location string) (bool, netip.Addr, error) {
	p, err := f.planner.planAbsent(ctx, s, location, PlanRequest{})
	if err != nil {
		return false, netip.Addr{}, err
	}
	hostname := service.For(service.Input{Defaults: f.planner.defaults, Service: s, Now: f.planner.clock.Now()}).Hostname
	for _, o := range p.Status.Objects {
		for _, address := range o.Addresses {
			if slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool {
				return i.IP == address.String() || hostname != "" && i.Hostname == hostname
			}) {
				return true, address, nil
			}
		}
	}
	return len(p.Status.Objects) > 0, netip.Addr{}, nil
}
