// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

// A Searcher is a [Balancer] of a cloud that lists the objects of all locations at once. Then what a Service has is found
// without knowing where it may be.
type Searcher interface {
	// Search returns the ids of the locations where an owner has something, also of those that the configuration does
	// not name. What it lists is not older than the call if fresh is set. Errors are as those of Plan.
	Search(ctx context.Context, owner plan.Owner, fresh bool) ([]string, error)
}

// search returns the locations where a Service has something, of which nothing, or not all, is stored on it. The second
// result is false if the cloud cannot tell: then it may be at any location of the configuration.
func (l *LoadBalancers) search(ctx context.Context, s *corev1.Service, stored []string) ([]string, bool, error) {
	if l.opts.Searcher == nil || !l.unlocated(s, stored) {
		return nil, false, nil
	}
	ids, err := l.opts.Searcher.Search(ctx, l.opts.Defaults.OwnerOf(s), true)
	if err != nil {
		return nil, true, fmt.Errorf("searching for what the Service has: %w", err)
	}
	for _, id := range l.locations.resolveKnown(stored) {
		if _, lost := unfoundName(id); !lost {
			ids = append(ids, id)
		}
	}
	return distinct(ids), true, nil
}

// unlocated reports whether a Service may have something at a location that is not stored on it. An address that is
// stored may be associated already, and have nothing yet by which a search finds it.
func (l *LoadBalancers) unlocated(s *corev1.Service, stored []string) bool {
	if len(stored) > 0 {
		return slices.ContainsFunc(l.locations.resolveKnown(stored), func(id string) bool {
			_, lost := unfoundName(id)
			return lost
		})
	}
	on := l.opts.Defaults.Stored(s)
	return len(on.Intent)+len(on.Unproved.Intent) == 0 && l.state.get(s.UID).intent == ""
}
