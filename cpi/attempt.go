// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// An attempt reconciles the load balancer of one Service. The caller holds the lock of the Service.
type attempt struct {
	planner   *planner
	records   *records
	locations *locations
	queues    *queues
	states    *perService[serviceState]
	events    *eventDeduper

	service  *corev1.Service
	patience time.Duration // how long to wait for a slot at the location
	request  service.Request
	location string // ID; empty until it is found
	// neverReady means that the load balancer has never been usable. If it cannot be created, everything created for it
	// is removed.
	neverReady bool
	// addresses are the addresses of the load balancer. unused are recorded addresses that are no longer in use.
	addresses, unused []netip.Addr
}

// locate finds the location.
func (a *attempt) locate(ctx context.Context) (err error) {
	a.location, err = a.locations.find(ctx, a.request.Location)
	return err
}

// where describes the location in messages for users.
func (a *attempt) where() string { return a.locations.describe(a.request.Location) }

// elsewhere reports whether the Service may still have objects at another known location. They are removed once the
// load balancer here matches the Service. Until then they use objects that locations share.
func (a *attempt) elsewhere() bool {
	return slices.ContainsFunc(a.locations.resolveKnown(a.records.locations(a.service)), func(id string) bool {
		_, lost := unresolvedName(id)
		return id != a.location && !lost
	})
}

// everywhere returns the locations where the Service may have objects, if none is recorded: those where the cloud shows
// objects, or else all locations. Locations that cannot be found are included by name, unless the load balancer is new.
func (a *attempt) everywhere(ctx context.Context) []string {
	if a.locations.searcher != nil {
		if ids, err := a.locations.searcher.Search(ctx, a.request.Desired.Owner, false); err == nil {
			return ids
		}
	}
	ids, err := a.locations.all(ctx)
	if err == nil {
		return ids
	}
	klog.FromContext(ctx).Error(err, "Cannot find some locations of the configuration; the search for objects of the load balancer there is postponed",
		"service", klog.KObj(a.service))
	if !a.neverReady {
		ids = append(ids, a.locations.unresolved()...)
	}
	return ids
}

// write changes the record of the Service.
func (a *attempt) write(ctx context.Context, n recordChange) error {
	if err := a.records.write(ctx, a.service, n); err != nil {
		return err
	}
	if n.addresses != nil {
		a.request.Desired.Intent = slices.Clone(n.addresses)
	}
	return nil
}
