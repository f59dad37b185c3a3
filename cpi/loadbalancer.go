package cpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// rounds is how often one call looks, plans and runs steps.
	rounds = 3
	// deletionRounds is how often deletion does: it cannot ask to be called again soon.
	deletionRounds = 6
	// patience is how long deletion waits for its turn at a place.
	patience = 10 * time.Second
	// atOnce is how many load balancers of one place are worked on at once, if nothing else is said: half of the usual workers.
	atOnce = 5
	// usualDrift is how often all load balancers are looked at, if nothing else is said.
	usualDrift = time.Minute
)

// LoadBalancerOptions are what load balancers of Services are made of.
type LoadBalancerOptions struct {
	Balancer Balancer
	// Defaults have the places as their Gateways.
	Defaults service.Defaults
	// Client writes down intended addresses and reads Secrets with certificates.
	Client   kubernetes.Interface
	Services corelisters.ServiceLister
	Nodes    corelisters.NodeLister
	// NodeInformer tells of changes of nodes; nil: they are found when Services are synced and by drift.
	NodeInformer cache.SharedInformer
	// Synced say that Services and Nodes is complete; nothing is repaired before.
	Synced   []cache.InformerSynced
	Recorder record.EventRecorder
	// Self is where people look for us: it is told of load balancers without a Service; nil: the log only.
	Self *corev1.ObjectReference
	// AtOnce is how many load balancers of one place are worked on at once; 0: 5. The others are asked to come again, so that a slow place does
	// not hold up the others.
	AtOnce int
	// Drift is how often all load balancers are compared with what is there; 0: 1 min.
	Drift time.Duration
	Clock clock.WithTicker
}

// LoadBalancers answer for Services of type LoadBalancer: look, plan, run the steps, again until the plan is empty. What is
// owned is found by its markers; nothing is remembered but what caches may not tell yet.
type LoadBalancers struct {
	opts LoadBalancerOptions
	// locks keeps a load balancer from being worked on twice at once; turns are those of places.
	locks    keyed
	turns    turns
	teller   teller
	memories memories
	editions editions
	found    places
	// choosing keeps Services of one place from choosing an address at the same time.
	choosing keyed
	nudge    chan struct{} // nodes changed
}

var _ cloudprovider.LoadBalancer = (*LoadBalancers)(nil)

// NewLoadBalancers returns what answers for Services.
func NewLoadBalancers(o LoadBalancerOptions) *LoadBalancers {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.AtOnce == 0 {
		o.AtOnce = atOnce
	}
	if o.Drift == 0 {
		o.Drift = usualDrift
	}
	return &LoadBalancers{
		opts: o, turns: turns{most: o.AtOnce, clock: o.Clock}, teller: teller{recorder: o.Recorder}, nudge: make(chan struct{}, 1),
	}
}

// GetLoadBalancerName returns the name by which logs know a load balancer.
func (l *LoadBalancers) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return lb.LoadBalancerName(l.owner(s))
}

func (l *LoadBalancers) owner(s *corev1.Service) lb.Owner {
	return service.OwnerOf(l.opts.Defaults.Cluster, s)
}

// GetLoadBalancer says whether anything of a Service is left anywhere. When it cannot be said, that is an error: Kubernetes forgets a
// Service whose load balancer is said not to exist. So whoever works on it at the moment is waited for.
func (l *LoadBalancers) GetLoadBalancer(ctx context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	unlock, err := l.locks.lock(ctx, string(s.UID))
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	all, lost := l.standing(ctx, s)
	for _, place := range all {
		switch nothing, err := l.nothing(ctx, s, place); {
		case err != nil:
			return nil, false, err
		case !nothing:
			return s.Status.LoadBalancer.DeepCopy(), true, nil
		}
	}
	return nil, false, lost
}

// EnsureLoadBalancer brings the load balancer of a Service to what the Service asks for, or says what it waits for.
func (l *LoadBalancers) EnsureLoadBalancer(ctx context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	if s.Spec.LoadBalancerClass != nil {
		return nil, cloudprovider.ImplementedElsewhere
	}
	unlock, err := l.locks.lock(ctx, string(s.UID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.ensure(ctx, s)
}

// UpdateLoadBalancer follows changes of nodes, as all other changes. What has to wait is no failure here: it is looked at again soon.
func (l *LoadBalancers) UpdateLoadBalancer(ctx context.Context, cluster string, s *corev1.Service, nodes []*corev1.Node) error {
	_, err := l.EnsureLoadBalancer(ctx, cluster, s, nodes)
	var retry *api.RetryError
	if errors.As(err, &retry) {
		klog.FromContext(ctx).V(2).Info("A load balancer has to wait to follow the nodes", "service", klog.KObj(s), "why", err.Error())
		return nil
	}
	return err
}

// EnsureLoadBalancerDeleted removes all that a Service has, wherever it is, and looks once more before it says so.
func (l *LoadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *corev1.Service) error {
	unlock, err := l.locks.lock(ctx, string(s.UID))
	if err != nil {
		return err
	}
	defer unlock()
	all, lost := l.standing(ctx, s)
	if err := cmp.Or(l.removeFrom(ctx, s, all), lost); err != nil {
		return err
	}
	l.forget(s)
	return nil
}

// forget forgets a Service of which nothing is left.
func (l *LoadBalancers) forget(s *corev1.Service) {
	l.teller.forget(s.UID)
	l.memories.forget(s.UID)
}

// removeFrom removes all that a Service has at some places. Its lock is held.
func (l *LoadBalancers) removeFrom(ctx context.Context, s *corev1.Service, places []string) error {
	if err := l.uproot(ctx, s, places); err != nil {
		return err
	}
	for _, place := range places {
		if err := l.remove(ctx, s, place); err != nil {
			return err
		}
	}
	return nil
}

// uproot removes what is on gateways, where there are several: what is seen from all of them can go only then.
func (l *LoadBalancers) uproot(ctx context.Context, s *corev1.Service, places []string) error {
	if len(places) < 2 {
		return nil
	}
	for _, place := range places {
		done, err := l.turns.wait(ctx, place, patience)
		if err != nil {
			return err
		}
		err = l.uprootAt(ctx, s, place)
		done()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *LoadBalancers) uprootAt(ctx context.Context, s *corev1.Service, place string) error {
	want, err := l.absent(s, place)
	if err != nil {
		return err
	}
	plan, err := l.opts.Balancer.Plan(ctx, place, PlanRequest{Want: want})
	if err != nil {
		return err
	}
	steps := slices.DeleteFunc(plan.Steps, func(step lb.Step) bool { return !step.Kind.OnGateway() })
	if n, err := l.run(ctx, s, place, steps); err != nil {
		return fmt.Errorf("%d of %d steps done: %w", n, len(steps), err)
	}
	return nil
}

// remove carries out the plan for "absent" at one place. It waits for a busy place with its turn in hand, because the controller cannot
// be asked to call deletion again soon: it would wait for twice as long each time, up to five minutes.
func (l *LoadBalancers) remove(ctx context.Context, s *corev1.Service, place string) error {
	done, err := l.turns.wait(ctx, place, patience)
	if err != nil {
		return err
	}
	defer done()
	fresh := false
	for round := 1; ; round++ {
		plan, err := l.removeMore(ctx, s, place, fresh)
		switch {
		case err == nil && plan.Done() && fresh:
			return nil
		case round == deletionRounds:
			return cmp.Or(err, fmt.Errorf("what is left at %s does not go: %w", place, lb.ErrBusy))
		case err == nil:
			fresh = plan.Done()
		case !errors.Is(err, lb.ErrBusy):
			return err
		default:
			fresh = false
			if err := l.pause(ctx); err != nil {
				return err
			}
		}
	}
}

// removeMore carries out what can be removed at a place now, and returns what that was.
func (l *LoadBalancers) removeMore(ctx context.Context, s *corev1.Service, place string, fresh bool) (lb.Plan, error) {
	want, err := l.absent(s, place)
	if err != nil {
		return lb.Plan{}, err
	}
	plan, err := l.opts.Balancer.Plan(ctx, place, PlanRequest{Want: want, Fresh: fresh})
	if err != nil {
		return lb.Plan{}, err
	}
	l.teller.notices(s, plan.Notices)
	if plan.Wait != "" {
		return plan, errors.New(plan.Wait)
	}
	if n, err := l.run(ctx, s, place, plan.Steps); err != nil {
		return plan, fmt.Errorf("%d of %d steps done: %w", n, len(plan.Steps), err)
	}
	return plan, nil
}

// pause waits until something busy may be free.
func (l *LoadBalancers) pause(ctx context.Context) error {
	select {
	case <-l.opts.Clock.After(soon + rand.N(soon/2)): //nolint:gosec // jitter
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run runs steps in their order, and returns how many were done.
func (l *LoadBalancers) run(ctx context.Context, s *corev1.Service, place string, steps []lb.Step) (int, error) {
	log := klog.FromContext(ctx)
	for i, step := range steps {
		log.Info("Changing the load balancer", "service", klog.KObj(s), "place", place, "step", step.String())
		if err := l.opts.Balancer.Run(ctx, place, step); err != nil {
			return i, fmt.Errorf("%s: %w", step, err)
		}
	}
	return len(steps), nil
}
