package cpi

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// outageEvery is how often it is looked whether an outage is to be told.
	outageEvery = 15 * time.Second
	// outagePatience is how long the cloud may be away until people are told: most outages are over before.
	outagePatience = time.Minute
	// outageReminder is how often they are told again: events are kept for an hour.
	outageReminder = 30 * time.Minute
	// reasonBack is for the end of an outage.
	reasonBack = "CloudAnswers"
)

// A Trouble is why a cloud cannot be worked with, in words for people.
type Trouble struct {
	Reason, Message string
	// Stays says that it does not end by itself, as an outage does: somebody has to correct something.
	Stays bool
}

// OutageOptions say how outages are told.
type OutageOptions struct {
	// Explain says what an error of the cloud means; false if it does not mean that the cloud cannot be worked with.
	Explain  func(error) (Trouble, bool)
	Recorder record.EventRecorder
	// Self is where people look for us: the pod.
	Self     *corev1.ObjectReference
	Services corelisters.ServiceLister
	Clock    clock.Clock // nil: real time
}

// Outages tell people, by events, that the cloud cannot be worked with: on our own pod, again and again as long as it lasts, and once on each
// Service whose load balancer waits for it. They learn it from what is asked anyhow, and ask nothing themselves.
type Outages struct {
	opts OutageOptions

	mu      sync.Mutex
	trouble Trouble
	since   time.Time // zero: there is no outage
	told    time.Time // zero: nobody was told of this outage
	waiting map[types.UID]bool
}

// NewOutages returns what tells of outages once it is started.
func NewOutages(o OutageOptions) *Outages {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Outages{opts: o, waiting: map[types.UID]bool{}}
}

// Start begins to tell, until ctx ends.
func (o *Outages) Start(ctx context.Context) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-o.opts.Clock.After(outageEvery):
				o.tell(ctx)
			}
		}
	}()
}

// Note notes how a call of the cloud ended, and says whether that means an outage.
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
		o.told = time.Time{}
	}
	o.trouble = trouble
	return true
}

// end ends an outage. The lock is held.
func (o *Outages) end() {
	if !o.told.IsZero() {
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeNormal, reasonBack, "The cloud can be worked with again")
	}
	o.since, o.told, o.trouble = time.Time{}, time.Time{}, Trouble{}
	clear(o.waiting)
}

// tell tells of an outage, if there is one and it is time.
func (o *Outages) tell(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.opts.Clock.Now()
	if o.since.IsZero() || !o.trouble.Stays && now.Sub(o.since) < outagePatience {
		return
	}
	if o.told.IsZero() || now.Sub(o.told) >= outageReminder {
		o.told = now
		o.opts.Recorder.Event(o.opts.Self, corev1.EventTypeWarning, o.trouble.Reason, cut(o.trouble.Message))
	}
	o.tellWaiting(ctx)
}

// tellWaiting tells Services that wait, each once. The lock is held.
func (o *Outages) tellWaiting(ctx context.Context) {
	all, err := o.opts.Services.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing Services")
		return
	}
	for _, s := range all {
		if state := stateOf(s); (state == statePending || state == stateLeaving) && !o.waiting[s.UID] {
			o.waiting[s.UID] = true
			o.opts.Recorder.Event(s, corev1.EventTypeWarning, o.trouble.Reason, cut("The load balancer waits: "+o.trouble.Message))
		}
	}
}

// Machines returns machines whose snapshots are noted.
func (o *Outages) Machines(m Machines) Machines { return &notedMachines{m, o} }

type notedMachines struct {
	Machines

	outages *Outages
}

// Snapshot notes whether there was one.
func (n *notedMachines) Snapshot(ctx context.Context, maxAge time.Duration) ([]Machine, error) {
	all, err := n.Machines.Snapshot(ctx, maxAge)
	if ctx.Err() == nil {
		n.outages.Note(err)
	}
	return all, err
}

// Balancer returns a balancer whose failures are noted. Those of an outage are nobody's fault: they wrap [lb.ErrUnknown], whatever they were, so
// that no Service is said to ask for what it cannot have.
func (o *Outages) Balancer(b Balancer) Balancer { return &notedBalancer{b, o} }

type notedBalancer struct {
	Balancer

	outages *Outages
}

// Place notes that it could not be found.
func (n *notedBalancer) Place(ctx context.Context, name string) (string, error) {
	id, err := n.Balancer.Place(ctx, name)
	return id, n.noted(ctx, err)
}

// Plan notes that there was none. One may be made from what was seen earlier, which proves nothing.
func (n *notedBalancer) Plan(ctx context.Context, place string, request PlanRequest) (lb.Plan, error) {
	plan, err := n.Balancer.Plan(ctx, place, request)
	return plan, n.noted(ctx, err)
}

// Run notes that a step failed.
func (n *notedBalancer) Run(ctx context.Context, place string, step lb.Step) error {
	return n.noted(ctx, n.Balancer.Run(ctx, place, step))
}

func (n *notedBalancer) noted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !n.outages.Note(err) {
		return err
	}
	return fmt.Errorf("%w: %s", lb.ErrUnknown, err.Error())
}
