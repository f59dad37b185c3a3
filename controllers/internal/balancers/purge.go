// SPDX-License-Identifier: Apache-2.0

// Package balancers removes the load balancers of a VCDCluster in deletion from edge gateways. The removal runs
// concurrently with reconciles, which report its progress. It ends when nothing remains, or when a user decides to
// leave the rest, but never because of a timeout.
package balancers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// attemptTimeout bounds one attempt to remove the load balancers of a cluster. The next attempt continues.
	attemptTimeout = 10 * time.Minute
	// Afterlife is how long a cloud controller manager may still work after the API server of its cluster is gone. It
	// exits when it could not renew its lease for ten seconds, and no other instance can acquire the lease. The API
	// server is gone with the control plane, before the VCDCluster.
	Afterlife = 20 * time.Second
)

// A Request describes a removal for a cluster. All requests to one [Purge] have the same cluster and scope.
type Request struct {
	Client   client.Client
	Recorder events.EventRecorder
	Cluster  *infrav1.VCDCluster
	// Endpoint selects the load balancer of the control-plane endpoint, which no cloud controller manager writes.
	// Otherwise the load balancers of Services are removed.
	Endpoint bool
	// Wake triggers another reconcile.
	Wake func()
	Now  func() time.Time
}

// A Purge is the removal of load balancers of one cluster. The zero value is a removal that has not begun. It is safe
// for concurrent use.
type Purge struct {
	mu        sync.Mutex
	begun     bool
	attempted time.Time // start of the last attempt
	removal   time.Time // when any manager last removed an object; zero: never
	noted     time.Time // last removal that this process recorded on the VCDCluster; zero: none
	running   bool
	listed    bool     // whether LeaveListed has started a list
	over      bool     // nothing remains, or a user decided to leave the rest
	step      string   // last step
	removed   []string // objects that all attempts removed
	remains   []string // objects that a user decided to leave
	err       error    // of the last attempt
	retry     time.Time

	missing map[string]time.Time // gateways that VCD does not show, and since when; only the running attempt uses it
}

// begin continues the removal of a previous manager.
func (p *Purge) begin(r Request) {
	if p.begun {
		return
	}
	p.begun = true
	p.missing = map[string]time.Time{}
	if !r.Endpoint {
		p.removal = notedRemoval(r.Cluster, r.Now())
	}
}

// Proceed reports the progress of the removal, and starts an attempt if one is due.
func (p *Purge) Proceed(ctx context.Context, r Request, on Gateways) phases.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(r)
	now := r.Now()
	switch {
	case p.over:
		return phases.Done
	case p.running:
		return phases.Wait(intervals.Task, infrav1.TaskRunningReason,
			"Removing load balancers of the cluster from %s: %s", on.Name, p.step)
	case p.retry.IsZero():
	case p.isComplete(r):
		p.over = true
		if len(p.removed) > 0 {
			deleted(r.Recorder, r.Cluster, on.Name, p.removed)
		}
		return phases.Done
	case errors.Is(p.err, loadbalancer.ErrRefused) && p.mayBeLeft(r):
		p.over = true
		left(r.Recorder, r.Cluster, fmt.Sprintf("%s cannot be read: %v", on.Name, p.err))
		return phases.Done
	case now.Before(p.retry):
		return problem(p.err, on, p.retry.Sub(now))
	}
	p.attempted = now
	p.step = "listing them"
	p.running = true
	a := newAttempt(p, r, on)
	beside(ctx, r.Wake, a.run)
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Listing load balancers of the cluster on %s",
		on.Name)
}

// isComplete reports whether the last attempt found nothing, after the creation of further objects became impossible.
func (p *Purge) isComplete(r Request) bool {
	return p.err == nil && (r.Endpoint || p.removal.IsZero() || p.attempted.Sub(p.removal) >= Afterlife)
}

// mayBeLeft reports whether a refusal ends the removal. With mode None, or if the provider never installed a cloud
// controller manager that creates load balancers, the user does not need the right to view gateways. Once the removal
// of a load balancer has begun, the Purge waits for the rest.
func (p *Purge) mayBeLeft(r Request) bool {
	switch {
	case r.Endpoint:
		return false
	case r.Cluster.Spec.CloudProvider.Mode == infrav1.CloudProviderNone:
		return true
	}
	return p.removal.IsZero() && !areAllowed(r.Cluster)
}

// areAllowed reports whether the cloud controller manager of a cluster creates load balancers, or did so earlier.
func areAllowed(c *infrav1.VCDCluster) bool {
	return c.Spec.RecordedState.LoadBalancersAllowed != nil || checks.CreatesBalancers(c)
}

// beside runs a function concurrently with reconciles, and wakes the cluster when it returns.
func beside(ctx context.Context, wake func(), run func(context.Context)) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	go func() {
		defer wake()
		defer cancel()
		run(work)
	}()
}
