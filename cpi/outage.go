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
	// outageEvery is the interval of checks for outages.
	outageEvery = 15 * time.Second
	// outageGracePeriod is the duration of an outage before an event is emitted. Most outages are shorter.
	outageGracePeriod = time.Minute
	// outageReminder is the interval at which the event is repeated. Kubernetes keeps events for an hour.
	outageReminder = 30 * time.Minute
)

// A Trouble is the reason why a cloud is unusable, in a text for users.
type Trouble struct {
	Reason, Message string
	// Stays means that, unlike an outage, it does not end without a user's action.
	Stays bool
}

// OutageOptions configure [Outages].
type OutageOptions struct {
	// Explain returns the meaning of an error of the cloud. It returns false if the cloud is still usable.
	Explain  func(error) (Trouble, bool)
	Recorder record.EventRecorder
	// Self is the object of events: the pod.
	Self     *corev1.ObjectReference
	Services corelisters.ServiceLister
	// Defaults are the defaults for Services that wait. They are the zero value if the cloud has no load balancers.
	Defaults service.Defaults
	Clock    clock.Clock // nil: real time
}

// Outages emit events while the cloud is unusable: repeatedly on the pod of this process, and once on each Service
// whose load balancer waits. They learn of outages from the calls of others, and make no calls themselves.
type Outages struct {
	opts OutageOptions

	mu       sync.Mutex
	trouble  Trouble
	since    time.Time // zero: no outage
	reported time.Time // zero: this outage was not reported yet
	waiting  map[types.UID]bool
}

// NewOutages returns Outages that report nothing until they are started.
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

// Note records the result of a call to the cloud, and reports whether it is an outage.
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

// answered reports whether a snapshot is incomplete although the whole cloud responded, because its machines keep
// changing.
func (o *Outages) answered(err error) bool {
	if _, partial := errors.AsType[*IncompleteError](err); !partial {
		return false
	}
	_, trouble := o.opts.Explain(err)
	return !trouble
}

// end ends an outage. The caller holds the lock.
func (o *Outages) end() {
	if !o.reported.IsZero() {
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeNormal, reasonReachable, "The cloud is available again")
	}
	o.since = time.Time{}
	o.reported = time.Time{}
	o.trouble = Trouble{}
	clear(o.waiting)
}

// report emits an event if there is an outage and an event is due.
func (o *Outages) report(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.opts.Clock.Now()
	if o.since.IsZero() || !o.trouble.Stays && now.Sub(o.since) < outageGracePeriod {
		return
	}
	if o.reported.IsZero() || now.Sub(o.reported) >= outageReminder {
		o.reported = now
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeWarning, o.trouble.Reason, cut(o.trouble.Message))
	}
	o.reportWaiting(ctx)
}

// reportWaiting emits one event for each waiting Service. The caller holds the lock.
func (o *Outages) reportWaiting(ctx context.Context) {
	all, err := o.opts.Services.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list Services")
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

// Machines wraps machines to record the results of their snapshots.
func (o *Outages) Machines(m Machines) Machines { return &notedMachines{m, o} }

type notedMachines struct {
	Machines

	outages *Outages
}

// Snapshot records whether the snapshot succeeded, and whether it lacks data that new Nodes wait for.
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

// Balancer wraps a balancer to record its failures, and adds a metric of the last observation of each location.
// Failures due to an outage wrap [loadbalancer.ErrUnknown] in place of their original error, so that no Service is
// refused because of them.
func (o *Outages) Balancer(b Balancer) *NotedBalancer {
	return &NotedBalancer{
		Balancer: b,
		outages:  o,
		last:     map[string]time.Time{},
		desc: prometheus.NewDesc("capvcd_ccm_last_observation_timestamp_seconds",
			"Time of the last successful observation of the load balancers at a location, in seconds since the epoch.",
			[]string{"location"}, nil),
	}
}

// A NotedBalancer is the result of [Outages.Balancer].
type NotedBalancer struct {
	Balancer

	outages *Outages
	desc    *prometheus.Desc

	mu   sync.Mutex
	last map[string]time.Time // by location
}

// Locate records failures.
func (n *NotedBalancer) Locate(ctx context.Context, name string) (string, error) {
	id, err := n.Balancer.Locate(ctx, name)
	return id, n.noted(ctx, err)
}

// Plan records failures, and the time of each successful plan. Success does not end an outage, because the plan may use
// a cached observation.
func (n *NotedBalancer) Plan(ctx context.Context, location string, request PlanRequest) (loadbalancer.Plan, error) {
	p, err := n.Balancer.Plan(ctx, location, request)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.last[location] = n.outages.opts.Clock.Now()
	}
	return p, n.noted(ctx, err)
}

// Run records failures.
func (n *NotedBalancer) Run(ctx context.Context, location string, step loadbalancer.Step) error {
	return n.noted(ctx, n.Balancer.Run(ctx, location, step))
}

// searcher returns the balancer as a [Searcher] whose failures are recorded, or nil if it is not a Searcher.
func (n *NotedBalancer) searcher() Searcher {
	searcher, ok := n.Balancer.(Searcher)
	if !ok {
		return nil
	}
	return notedSearcher{searcher: searcher, balancer: n}
}

// A notedSearcher records failed searches.
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
