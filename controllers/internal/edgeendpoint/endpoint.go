// SPDX-License-Identifier: Apache-2.0

// Package edgeendpoint manages control-plane endpoints that are load balancers on edge gateways. It plans them with
// package lb, executes the plans with package edge concurrently with reconciles, and keeps their members in sync with
// the control planes. Reconcilers of clusters and of machines share it.
package edgeendpoint

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
)

// workTimeout bounds the steps of one plan. The next plan continues.
const workTimeout = 15 * time.Minute

// Endpoints holds the endpoints of clusters. The zero value is ready to use.
type Endpoints struct {
	store local.Store[endpoint]
}

// An endpoint caches the state of one cluster's endpoint in this process. It is safe for concurrent use.
type endpoint struct {
	mu      sync.Mutex
	running bool
	step    string // last step
	failure failure
	waiting map[types.UID]func()
	seen    map[types.UID]member
	intent  intent
}

// An intent is a plan that waits until its addresses are stored. Addresses that are allocated before its steps run do
// not belong to the endpoint.
type intent struct {
	plan     loadbalancer.Plan
	gateway  string
	settings settings.Version
}

// A failure is the result of a failed attempt, and the time of the next attempt.
type failure struct {
	out      phases.Result
	until    time.Time
	count    int
	settings settings.Version
}

// A member is the state of a machine in its last pass, which the cache of other reconciles may not show yet.
type member struct {
	address string
	leaves  bool
}

// A Request is the request of a reconcile for the endpoint of a cluster.
type Request struct {
	Client  client.Client
	Session *session.Session
	Cluster *infrav1.VCDCluster
	// Owner is the Cluster; nil if it is gone.
	Owner *clusterv1.Cluster
	// Machine is the reconciled machine, as the pass sees it; nil: none.
	Machine *infrav1.VCDMachine
	// Leaves means that the machine must not be a member, although it is not being deleted.
	Leaves bool
	// Gateway is the URN of the edge gateway.
	Gateway string
	// Family is the family of the endpoint if nothing else determines it; empty: IPv4.
	Family loadbalancer.Family
	// Wake triggers another reconcile.
	Wake func()
	Now  time.Time
}

func (r Request) uid() types.UID {
	if r.Machine != nil {
		return r.Machine.UID
	}
	return r.Cluster.UID
}

// Idle reports whether no steps are running for the endpoint of a cluster.
func (e *Endpoints) Idle(cluster types.UID) bool {
	own := e.store.Of(cluster)
	own.mu.Lock()
	defer own.mu.Unlock()
	return !own.running
}

// Forget drops the state of a cluster that is gone.
func (e *Endpoints) Forget(cluster types.UID) { e.store.Drop(cluster) }

// Ensure reconciles the endpoint with the spec of the cluster. If the plan has an intent, the caller must store its
// addresses and the ID of the cluster. Ensure writes nothing to VCD until stored is set.
func (e *Endpoints) Ensure(ctx context.Context, r Request, stored bool) (loadbalancer.Plan, phases.Result, error) {
	own := e.store.Of(r.Cluster.UID)
	own.mu.Lock()
	defer own.mu.Unlock()
	own.note(r)
	if out := own.busy(r); out != phases.Done {
		return loadbalancer.Plan{}, out, nil
	}
	if plan, ok := own.intended(r, stored); ok {
		return plan, own.start(ctx, r, plan.Steps), nil
	}
	plan, out, err := own.plan(ctx, r, edge.PlanOptions{})
	if err != nil || out != phases.Done {
		return plan, out, err
	}
	return plan, own.follow(ctx, r, plan, stored), nil
}

// follow executes a plan, or returns why it cannot be executed now.
func (own *endpoint) follow(ctx context.Context, r Request, plan loadbalancer.Plan, stored bool) phases.Result {
	switch {
	case len(plan.Refusals) > 0:
		own.keepMembers(ctx, r)
		return refusal(plan.Refusals[0])
	case plan.Done():
		own.failure = failure{}
		return phases.Done
	case len(plan.Stuck) > 0:
		return phases.Fail(intervals.Remedy, infrav1.RealizationFailedReason, "%s", plan.Stuck[0].Message)
	case len(plan.Steps) == 0:
		return phases.Wait(intervals.Task, infrav1.EndpointPendingReason, "The endpoint: %s", plan.Wait)
	case !stored || len(plan.Intent) > 0:
		own.intent = intent{plan, r.Gateway, settings.Of(r.Cluster)}
		return phases.Wait(intervals.Busy, infrav1.EndpointPendingReason,
			"Recording the location of the endpoint on edge gateway %s", r.Gateway)
	}
	return own.start(ctx, r, plan.Steps)
}

// intended returns the plan that waited for its addresses to be stored, and reports whether they are stored.
func (own *endpoint) intended(r Request, stored bool) (loadbalancer.Plan, bool) {
	last := own.intent
	if !stored || len(last.plan.Intent) == 0 || last.gateway != r.Gateway || last.settings != settings.Of(r.Cluster) ||
		!slices.Equal(last.plan.Intent, addresses(placement.EndpointAddresses(r.Cluster))) {
		return loadbalancer.Plan{}, false
	}
	own.intent = intent{}
	return last.plan, true
}

// Leave ensures that leaving machines are not members anymore. It creates nothing.
func (e *Endpoints) Leave(ctx context.Context, r Request) (phases.Result, error) {
	if r.Gateway == "" {
		return unrecorded(), nil
	}
	own := e.store.Of(r.Cluster.UID)
	own.mu.Lock()
	defer own.mu.Unlock()
	own.note(r)
	if out := own.busy(r); out != phases.Done {
		return out, nil
	}
	plan, out, err := own.plan(ctx, r, edge.PlanOptions{Follow: true})
	if err != nil || out != phases.Done || len(plan.Steps) == 0 {
		return out, err
	}
	return own.start(ctx, r, plan.Steps), nil
}

// keepMembers keeps the members in sync while the endpoint cannot be as desired.
func (own *endpoint) keepMembers(ctx context.Context, r Request) {
	plan, out, err := own.plan(ctx, r, edge.PlanOptions{Follow: true})
	if err == nil && out == phases.Done && len(plan.Steps) > 0 {
		own.start(ctx, r, plan.Steps)
	}
}

// note records the state of the machine of a request in its pass.
func (own *endpoint) note(r Request) {
	m := r.Machine
	if m == nil {
		return
	}
	if own.seen == nil {
		own.seen = map[types.UID]member{}
	}
	own.seen[m.UID] = member{m.Spec.RecordedState.EndpointMember, r.Leaves || !m.DeletionTimestamp.IsZero()}
}

// busy returns why the endpoint cannot be planned now: steps are running, or the last attempt has just failed.
func (own *endpoint) busy(r Request) phases.Result {
	if own.running {
		own.await(r)
		return working(own.step)
	}
	left := own.failure.until.Sub(r.Now)
	if left <= 0 || own.failure.settings != settings.Of(r.Cluster) {
		return phases.Done
	}
	out := own.failure.out
	out.After = left
	return out
}

func working(step string) phases.Result {
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Setting up the endpoint: %s", step)
}

// await wakes the caller when the running steps have ended.
func (own *endpoint) await(r Request) {
	if own.waiting == nil {
		own.waiting = map[types.UID]func(){}
	}
	own.waiting[r.uid()] = r.Wake
}

// plan observes the gateway and returns a plan.
func (own *endpoint) plan(ctx context.Context, r Request, o edge.PlanOptions) (loadbalancer.Plan, phases.Result, error) {
	members, out, err := own.members(ctx, r)
	if err != nil || out != phases.Done {
		return loadbalancer.Plan{}, out, err
	}
	want, err := desiredOf(r, members)
	if err != nil {
		return loadbalancer.Plan{}, phases.Stop(infrav1.EndpointAddressInvalidReason, "%v", err), nil
	}
	o.NAT = want.OneArm != nil
	plan, err := r.Session.SharedBalancers().Plan(ctx, r.Gateway, want, o)
	if err != nil {
		out, err := unread(err, r.Gateway)
		return loadbalancer.Plan{}, out, err
	}
	return plan, phases.Done, nil
}

// members returns the addresses of the control planes that are members and do not leave.
func (own *endpoint) members(ctx context.Context, r Request) ([]netip.Addr, phases.Result, error) {
	list := &infrav1.VCDMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(r.Cluster.Namespace),
		index.OfCluster(capicluster.Name(r.Cluster, r.Owner))); err != nil {
		return nil, phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var texts []string
	listed := map[types.UID]bool{}
	for i := range list.Items {
		m := &list.Items[i]
		listed[m.UID] = true
		now := member{m.Spec.RecordedState.EndpointMember, !m.DeletionTimestamp.IsZero()}
		if known, ok := own.seen[m.UID]; ok {
			now.leaves = now.leaves || known.leaves
			if known.address != "" {
				now.address = known.address
			}
		}
		if now.leaves {
			continue
		}
		if now.address == "" {
			address, out, err := adoptedMember(ctx, r, m)
			if err != nil || out != phases.Done {
				return nil, out, err
			}
			now.address = address
		}
		texts = append(texts, now.address)
	}
	maps.DeleteFunc(own.seen, func(uid types.UID, _ member) bool { return !listed[uid] })
	found := addresses(texts)
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found), phases.Done, nil
}

// start runs steps concurrently with reconciles. At their end it wakes the caller and all others that wait.
func (own *endpoint) start(ctx context.Context, r Request, steps []loadbalancer.Step) phases.Result {
	own.running = true
	own.step = steps[0].String()
	own.await(r)
	driver := r.Session.SharedBalancers()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
	of := settings.Of(r.Cluster)
	go func() {
		defer cancel()
		began := time.Now()
		err := own.run(work, driver, r.Gateway, steps)
		own.end(err, of, r.Now.Add(time.Since(began)))
	}()
	return working(own.step)
}

func (own *endpoint) run(ctx context.Context, driver *edge.Driver, gateway string, steps []loadbalancer.Step) error {
	for _, step := range steps {
		own.mu.Lock()
		own.step = step.String()
		own.mu.Unlock()
		ctrl.LoggerFrom(ctx).Info("Changing the control-plane endpoint", "edgeGateway", gateway, "step", step.String())
		if err := driver.Run(ctx, gateway, step); err != nil {
			return err
		}
	}
	return nil
}

// end records the outcome of steps, and wakes all that wait.
func (own *endpoint) end(err error, of settings.Version, now time.Time) {
	own.mu.Lock()
	waiting := own.waiting
	own.running = false
	own.waiting = nil
	own.failure = own.failure.after(err, of, now)
	own.mu.Unlock()
	for _, wake := range waiting {
		wake()
	}
}
