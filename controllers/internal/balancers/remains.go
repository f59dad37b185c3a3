// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"context"
	"fmt"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// IsOver reports whether nothing remains, or a user decided to leave the rest.
func (p *Purge) IsOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// Leave ends the removal because a user decided so, and records an event. The argument where describes remaining
// objects.
func (p *Purge) Leave(r Request, where string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(r)
	p.over = true
	left(r.Recorder, r.Cluster, where)
}

// LeaveListed ends the removal because a user decided so, and records an event that lists the remaining objects. It
// lists them once, concurrently with reconciles.
func (p *Purge) LeaveListed(ctx context.Context, r Request, on Gateways) phases.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(r)
	switch {
	case p.running:
		return listing(on)
	case !p.listed:
		p.listed = true
		p.running = true
		cluster := r.Cluster.Spec.InfraID
		driver := on.Session.Balancers()
		beside(ctx, r.Wake, func(ctx context.Context) {
			remains, err := remainsOn(ctx, driver, on, cluster)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running = false
			p.remains = remains
			p.err = err
		})
		return listing(on)
	}
	p.over = true
	if len(p.remains) > 0 || p.err != nil {
		where := "on " + on.Name + ": " + strings.Join(p.remains, ", ")
		if p.err != nil {
			where += fmt.Sprintf(" (not all can be listed: %v)", p.err)
		}
		left(r.Recorder, r.Cluster, where)
	}
	return phases.Done
}

func listing(on Gateways) phases.Result {
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason,
		"Listing remaining load balancers of the cluster on %s", on.Name)
}

// A lister lists the objects of a cluster on a gateway.
type lister interface {
	Remains(ctx context.Context, gateway, cluster string) ([]string, error)
}

// remainsOn lists the objects of a cluster on gateways, as far as VCD shows them.
func remainsOn(ctx context.Context, driver lister, on Gateways, cluster string) ([]string, error) {
	all := []string{}
	failed := on.Lost
	for _, id := range on.IDs {
		found, err := driver.Remains(ctx, id, cluster)
		all = append(all, found...)
		if failed == nil {
			failed = err
		}
	}
	return all, failed
}
