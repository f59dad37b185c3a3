// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// outageEvery is how often outages are checked.
	outageEvery = 15 * time.Second
	// outagePatience is how long the cloud may be away before an event: most outages are shorter.
	outagePatience = time.Minute
	// outageReminder is how often the event is repeated: events are kept for an hour.
	outageReminder = 30 * time.Minute
)

// A Trouble is why a cloud cannot be used, in words for users.
type Trouble struct {
	Reason, Message string
	// Stays means that it does not end by itself, as an outage does: a user has to correct something.
	Stays bool
}

// OutageOptions are what [Outages] are made of.
type OutageOptions struct {
	// Explain returns what an error of the cloud means; false if the cloud can still be used.
	Explain  func(error) (Trouble, bool)
	Recorder record.EventRecorder
	// Self is the object for events: the pod.
	Self     *corev1.ObjectReference
	Services corelisters.ServiceLister
	// Defaults of Services that wait; the zero value where the cloud has no load balancers.
	Defaults service.Defaults
	Clock    clock.Clock // nil: real time
}

// Outages emit events while the cloud cannot be used: on our own pod, repeatedly, and once on each Service whose load
// balancer waits for it. They learn of it from the calls that others make, and make none.
type Outages struct {
	opts OutageOptions

	mu       sync.Mutex
	trouble  Trouble
	since    time.Time // zero: there is no outage
	reported time.Time // zero: this outage was not reported
	waiting  map[types.UID]bool
}

// NewOutages returns outages that are reported once they are started.
func NewOutages(o OutageOptions) *Outages {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Outages{opts: o, waiting: map[types.UID]bool{}}
}

// Start reports outages until ctx ends.
func (o *Outages) Start(ctx context.Context) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-o.opts.Clock.After(outageEvery):
				o.report(ctx)
			}
		}
	}()
}

// Note notes how a call of the cloud ended, and reports whether that means an outage.
func (o *Outages) Note(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.end()
		return false
	}
	trouble, ok := o.opts.Explain(err)
	if !ok {
		return false
	}
	if o.since.IsZero() {
		o.since = o.opts.Clock.Now()
	}
	if trouble.Reason != o.trouble.Reason {
		o.reported = time.Time{}
	}
	o.trouble = trouble
	return true
}

// answered reports whether a snapshot is incomplete though the whole cloud answered, as its machines change all the time.
func (o *Outages) answered(err error) bool {
	if _, partial := errors.AsType[*IncompleteError](err); !partial {
		return false
	}
	_, trouble := o.opts.Explain(err)
	return !trouble
}

// end ends an outage. The lock is held.
func (o *Outages) end() {
	if !o.reported.IsZero() {
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeNormal, reasonReachable, "The cloud is available again")
	}
	o.since = time.Time{}
	o.reported = time.Time{}
	o.trouble = Trouble{}
	clear(o.waiting)
}

// report emits an event of an outage, if there is one and it is time.
func (o *Outages) report(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.opts.Clock.Now()
	if o.since.IsZero() || !o.trouble.Stays && now.Sub(o.since) < outagePatience {
		return
	}
	if o.reported.IsZero() || now.Sub(o.reported) >= outageReminder {
		o.reported = now
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeWarning, o.trouble.Reason, cut(o.trouble.Message))
	}
	o.reportWaiting(ctx)
}

// reportWaiting emits an event for each Service that waits, once. The lock is held.
func (o *Outages) reportWaiting(ctx context.Context) {
	all, err := o.opts.Services.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing Services")
		return
	}
	for _, s := range all {
		if state := stateOf(o.opts.Defaults, s); (state == statePending || state == stateLeaving) && !o.waiting[s.UID] {
			o.waiting[s.UID] = true
			o.opts.Recorder.Event(s, corev1.EventTypeWarning, o.trouble.Reason,
				cut("The load balancer waits: "+o.trouble.Message))
		}
	}
}

// Machines returns machines whose snapshots are noted.
func (o *Outages) Machines(m Machines) Machines { return &notedMachines{m, o} }

type notedMachines struct {
	Machines

	outages *Outages
}

// Snapshot notes whether there was one, and whether it lacks what new Nodes wait for.
func (n *notedMachines) Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error) {
	all, err := n.Machines.Snapshot(ctx, maxAge)
	if ctx.Err() != nil {
		return all, err
	}
	lacking := err
	if n.outages.answered(err) {
		lacking = nil
	}
	for i := 0; i < len(all) && lacking == nil; i++ {
		lacking = all[i].Unready
	}
	n.outages.Note(lacking)
	return all, err
}

// Balancer returns a balancer whose failures are noted, with a metric of when each location was last observed. Failures
// of an outage wrap [loadbalancer.ErrUnknown], whatever they were: no Service is refused for them.
func (o *Outages) Balancer(b Balancer) *NotedBalancer {
	return &NotedBalancer{
		Balancer: b,
		outages:  o,
		last:     map[string]time.Time{},
		desc: prometheus.NewDesc("capvcd_ccm_last_observation_timestamp_seconds",
			"Time of the last successful observation of the load balancers at a location, in seconds since the "+
				"epoch.",
			[]string{"location"}, nil),
	}
}

// A NotedBalancer is a balancer of [Outages.Balancer].
type NotedBalancer struct {
	Balancer

	outages *Outages
	desc    *prometheus.Desc

	mu   sync.Mutex
	last map[string]time.Time // by location
}

// Locate notes that a location could not be found.
func (n *NotedBalancer) Locate(ctx context.Context, name string) (string, error) {
	id, err := n.Balancer.Locate(ctx, name)
	return id, n.noted(ctx, err)
}

// Plan notes failures, and when there was a plan. That ends no outage: it may be made from a cached observation.
func (n *NotedBalancer) Plan(ctx context.Context, location string, request PlanRequest) (loadbalancer.Plan, error) {
	p, err := n.Balancer.Plan(ctx, location, request)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.last[location] = n.outages.opts.Clock.Now()
	}
	return p, n.noted(ctx, err)
}

// Run notes that a step failed.
func (n *NotedBalancer) Run(ctx context.Context, location string, step loadbalancer.Step) error {
	return n.noted(ctx, n.Balancer.Run(ctx, location, step))
}

// searcher returns the balancer as a [Searcher] whose failures are noted; nil if it is none.
func (n *NotedBalancer) searcher() Searcher {
	searcher, ok := n.Balancer.(Searcher)
	if !ok {
		return nil
	}
	return notedSearcher{searcher: searcher, balancer: n}
}

// A notedSearcher notes failed searches.
type notedSearcher struct {
	searcher Searcher
	balancer *NotedBalancer
}

// Search implements [Searcher].
func (n notedSearcher) Search(ctx context.Context, owner loadbalancer.Owner, fresh bool) ([]string, error) {
	ids, err := n.searcher.Search(ctx, owner, fresh)
	return ids, n.balancer.noted(ctx, err)
}

func (n *NotedBalancer) noted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !n.outages.Note(err) {
		return err
	}
	return fmt.Errorf("%w: %s", loadbalancer.ErrUnknown, err.Error())
}

// Describe implements [prometheus.Collector].
func (n *NotedBalancer) Describe(descs chan<- *prometheus.Desc) { descs <- n.desc }

// Collect implements [prometheus.Collector].
func (n *NotedBalancer) Collect(to chan<- prometheus.Metric) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for location, at := range n.last {
		to <- prometheus.MustNewConstMetric(n.desc, prometheus.GaugeValue, float64(at.UnixMilli())/1000, location)
	}
}
