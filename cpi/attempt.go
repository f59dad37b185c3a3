// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// An attempt brings one load balancer to what its Service asks for. The lock of the Service is held.
type attempt struct {
	planner   *planner
	records   *records
	locations *locations
	queues    *queues
	states    *perService[serviceState]
	events    *eventDeduper

	service  *corev1.Service
	wish     service.Wish
	location string // id; empty until it is found
	// blank means that the load balancer has never been of use: when it cannot be made, nothing of it stays.
	blank bool
	// addresses are those of the load balancer, and unused stored ones that are not used any more.
	addresses, unused []netip.Addr
}

// locate finds the location.
func (a *attempt) locate(ctx context.Context) (err error) {
	a.location, err = a.locations.find(ctx, a.wish.Location)
	return err
}

// where describes the location for users.
func (a *attempt) where() string { return a.locations.describe(a.wish.Location) }

// elsewhere reports whether something may stand at another location that is known. It is removed when the load balancer
// is as desired here; until then it uses what locations share.
func (a *attempt) elsewhere() bool {
	return slices.ContainsFunc(a.locations.resolveKnown(a.records.locations(a.service)), func(id string) bool {
		_, lost := unfoundName(id)
		return id != a.location && !lost
	})
}

// everywhere returns the locations where the Service may have been, as none is stored: those where the cloud shows
// something, or else all. Those that cannot be found are stored by name, unless the load balancer is new.
func (a *attempt) everywhere(ctx context.Context) []string {
	if a.locations.searcher != nil {
		if ids, err := a.locations.searcher.Search(ctx, a.wish.Desired.Owner, false); err == nil {
			return ids
		}
	}
	ids, err := a.locations.all(ctx)
	if err == nil {
		return ids
	}
	klog.FromContext(ctx).Error(err, "Cannot find some locations of the configuration; the search for objects "+
		"of the load balancer there is postponed",
		"service", klog.KObj(a.service))
	if !a.blank {
		ids = append(ids, a.locations.unfound()...)
	}
	return ids
}

// write changes the record of the Service.
func (a *attempt) write(ctx context.Context, n note) error {
	if err := a.records.write(ctx, a.service, n); err != nil {
		return err
	}
	if n.addresses != nil {
		a.wish.Desired.Intent = slices.Clone(n.addresses)
	}
	return nil
}
