// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Searcher is a [Balancer] of a cloud that can list the objects of all locations at once. With it, the objects of a
// Service are found without known locations.
type Searcher interface {
	// Search returns the IDs of the locations where an owner has objects, including locations that are not in the
	// configuration. If fresh is set, the result is not older than the call. Errors are as those of Plan.
	Search(ctx context.Context, owner loadbalancer.Owner, fresh bool) ([]string, error)
}

// A finder finds the locations where a Service has objects.
type finder struct {
	planner   *planner
	records   *records
	prover    *prover
	locations *locations
	defaults  service.Defaults
	states    *perService[serviceState]
	events    *eventDeduper
}

// occupied returns the IDs of the locations where a Service may have objects to remove: the recorded ones, else those
// where the cloud shows objects, or else all. It returns an error if one of them cannot be found.
func (f *finder) occupied(ctx context.Context, s *corev1.Service) ([]string, error) {
	if err := f.records.store.load(ctx); err != nil {
		return nil, err
	}
	places := f.records.locations(s)
	if stored := f.defaults.Stored(s); len(places) == 0 && len(stored.Older.Locations) > 0 {
		n, err := f.prover.confirmed(ctx, s, stored)
		if err != nil {
			return nil, err
		}
		places = n.locations
	}
	if ids, searched, err := f.search(ctx, s, places); searched {
		return ids, err
	}
	ids, err := f.locations.resolve(ctx, places)
	if err != nil {
		f.reportBlocked(s, err, fmt.Sprintf("it may have been on a %s of the configuration that cannot be found: correct the entry, or remove it if the object no longer exists, and restart the cloud controller manager", f.locations.noun()))
	}
	return ids, err
}

// search returns the locations where a Service has objects, if its record may be incomplete. The second result is false
// if the cloud cannot search: then the Service may have objects at any location in the configuration.
func (f *finder) search(ctx context.Context, s *corev1.Service, stored []string) ([]string, bool, error) {
	if f.locations.searcher == nil || !f.mayBeUnrecorded(s, stored) {
		return nil, false, nil
	}
	ids, err := f.locations.searcher.Search(ctx, f.defaults.OwnerOf(s), true)
	if err != nil {
		return nil, true, fmt.Errorf("searching for the objects of the Service: %w", err)
	}
	for _, id := range f.locations.resolveKnown(stored) {
		if _, lost := unresolvedName(id); !lost {
			ids = append(ids, id)
		}
	}
	return distinct(ids), true, nil
}

// mayBeUnrecorded reports whether a Service may have objects at a location that is not recorded. A recorded address may
// already be associated, without objects yet by which a search could find it.
func (f *finder) mayBeUnrecorded(s *corev1.Service, stored []string) bool {
	if len(stored) > 0 {
		return slices.ContainsFunc(f.locations.resolveKnown(stored), func(id string) bool {
			_, lost := unresolvedName(id)
			return lost
		})
	}
	known := f.defaults.Stored(s)
	return len(known.Addresses)+len(known.Older.Addresses) == 0
}

// isEmptyAt reports whether a Service has no objects left at a location. A cached observation can only prove that
// objects exist, because another process may have created objects since.
func (f *finder) isEmptyAt(ctx context.Context, s *corev1.Service, location string) (bool, error) {
	for _, fresh := range []bool{false, true} {
		p, err := f.planner.planAbsent(ctx, s, location, PlanRequest{Fresh: fresh})
		if err != nil {
			f.reportBlocked(s, err, fmt.Sprintf("its remaining objects at %s are not visible: if the provider has deleted this %s, remove it from the entry of the Service in ConfigMap %s/%s",
				location, f.locations.noun(), f.records.store.namespace, RecordsName))
			return false, fmt.Errorf("searching for remaining objects of the load balancer: %w", err)
		}
		if !p.Done() {
			return false, nil
		}
	}
	return true, nil
}

// reportBlocked emits why the objects of a Service cannot be removed, with the remedy, if a user must act.
func (f *finder) reportBlocked(s *corev1.Service, err error, remedy string) {
	if errors.Is(err, loadbalancer.ErrRefused) {
		reason := strings.ReplaceAll(err.Error(), "\n", "; ")
		message := fmt.Sprintf("The load balancer cannot be removed: %s (%s)", remedy, reason)
		f.events.notices(s, "remains: "+remedy, []loadbalancer.Finding{{
			Reason:  reasonNotDeleted,
			Message: message,
		}})
	}
}
