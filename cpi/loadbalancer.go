// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const (
	// defaultAtOnce is half of the usual workers of the service controller.
	defaultAtOnce = 5
	// defaultDrift is the default of [LoadBalancerOptions.Drift].
	defaultDrift = time.Minute
)

// LoadBalancerOptions are what load balancers of Services are made of.
type LoadBalancerOptions struct {
	Balancer Balancer
	// Searcher finds what a Service has at any location; nil: the cloud cannot tell.
	Searcher Searcher
	Defaults service.Defaults
	// Client keeps the records of Services and reads Secrets with certificates.
	Client kubernetes.Interface
	// Namespace of the ConfigMap [RecordsName]; empty: kube-system.
	Namespace string
	// Manifest is the name of the file of a release with all rights, for users.
	Manifest string
	Services corelisters.ServiceLister
	Nodes    corelisters.NodeLister
	// NodeInformer announces changes of nodes; nil: they are found when Services are synced and by drift.
	NodeInformer cache.SharedInformer
	// Synced report whether Services and Nodes are complete; nothing is repaired before.
	Synced   []cache.InformerSynced
	Recorder record.EventRecorder
	// Self is the object for events about load balancers without a Service; nil: the log only.
	Self *corev1.ObjectReference
	// AtOnce is how many load balancers of one location are worked on at once; 0: 5. Others are retried, so that a slow
	// location does not hold up the others.
	AtOnce int
	// Drift is how often all load balancers are compared with what is there; 0: 1 min.
	Drift time.Duration
	Clock clock.WithTicker
}

// LoadBalancers implement Services of type LoadBalancer: observe, plan, run the steps, again until the plan is empty.
// What is owned is found by its markers; only what caches may not show yet is kept here.
type LoadBalancers struct {
	opts      LoadBalancerOptions
	store     *recordStore
	locations *locations
	planner   *planner
	records   *records
	prover    *prover
	finder    *finder
	queues    *queues
	states    *perService[serviceState]
	events    *eventDeduper
}

var _ cloudprovider.LoadBalancer = (*LoadBalancers)(nil)

// NewLoadBalancers returns the load balancers of Services.
func NewLoadBalancers(o LoadBalancerOptions) *LoadBalancers {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	store := newRecordStore(o)
	o.Defaults.Records = store
	o.AtOnce = cmp.Or(o.AtOnce, defaultAtOnce)
	o.Drift = cmp.Or(o.Drift, defaultDrift)
	l := &LoadBalancers{
		opts:  o,
		store: store,
		locations: &locations{
			balancer: o.Balancer,
			searcher: o.Searcher,
			defaults: o.Defaults,
		},
		queues: &queues{locations: fairQueue{slots: o.AtOnce}},
		states: &perService[serviceState]{},
		events: &eventDeduper{recorder: o.Recorder},
	}
	l.planner = &planner{
		balancer:  o.Balancer,
		defaults:  o.Defaults,
		client:    o.Client,
		services:  o.Services,
		nodes:     o.Nodes,
		locations: l.locations,
		states:    l.states,
		clock:     o.Clock,
	}
	l.records = &records{
		store:    store,
		client:   o.Client,
		services: o.Services,
		defaults: o.Defaults,
		states:   l.states,
	}
	l.prover = &prover{
		planner:   l.planner,
		records:   l.records,
		locations: l.locations,
		defaults:  o.Defaults,
		states:    l.states,
		events:    l.events,
	}
	l.finder = &finder{
		planner:   l.planner,
		records:   l.records,
		prover:    l.prover,
		locations: l.locations,
		defaults:  o.Defaults,
		states:    l.states,
		events:    l.events,
	}
	return l
}

// newRecordStore returns what keeps the records of Services.
func newRecordStore(o LoadBalancerOptions) *recordStore {
	store := &recordStore{
		client:    o.Client,
		namespace: cmp.Or(o.Namespace, metav1.NamespaceSystem),
		prefix:    recordPrefix(o.Defaults),
		manifest:  cmp.Or(o.Manifest, "the manifest"),
	}
	if o.Self != nil {
		store.missing = func(message string) {
			o.Recorder.Event(o.Self, corev1.EventTypeWarning, reasonManifest, cut(message))
		}
	}
	return store
}

// GetLoadBalancerName returns the name by which logs know a load balancer.
func (l *LoadBalancers) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return l.opts.Balancer.NameOf(l.opts.Defaults.OwnerOf(s))
}

// GetLoadBalancer reports whether anything of a Service is left anywhere, or is recorded of one that wants none. Where
// that is unknown it fails: Kubernetes forgets a Service without a load balancer. So it waits for other work on the
// Service.
func (l *LoadBalancers) GetLoadBalancer(ctx context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus,
	bool, error,
) {
	unlock, err := l.queues.services.wait(ctx, string(s.UID), nil)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	all, lost := l.finder.standing(ctx, s)
	unseen := []error{lost}
	for _, location := range all {
		switch nothing, err := l.finder.nothing(ctx, s, location); {
		case err != nil:
			unseen = append(unseen, err) // what can be seen elsewhere is removed
		case !nothing:
			return s.Status.LoadBalancer.DeepCopy(), true, nil
		}
	}
	return nil, s.Spec.Type != corev1.ServiceTypeLoadBalancer && l.records.remembered(s), errors.Join(unseen...)
}

// EnsureLoadBalancer brings the load balancer of a Service to what the Service asks for, or returns what it waits for.
func (l *LoadBalancers) EnsureLoadBalancer(
	ctx context.Context, _ string, s *corev1.Service, _ []*corev1.Node,
) (*corev1.LoadBalancerStatus, error) {
	if s.Spec.LoadBalancerClass != nil {
		return nil, cloudprovider.ImplementedElsewhere
	}
	unlock, err := l.queues.services.wait(ctx, string(s.UID), nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now := l.records.current(s)
	if now == nil {
		return s.Status.LoadBalancer.DeepCopy(), nil
	}
	return l.ensure(ctx, now)
}

// UpdateLoadBalancer follows changes of nodes, and all others. Waiting is no failure here: drift repair follows soon.
func (l *LoadBalancers) UpdateLoadBalancer(ctx context.Context, cluster string, s *corev1.Service,
	nodes []*corev1.Node,
) error {
	_, err := l.EnsureLoadBalancer(ctx, cluster, s, nodes)
	var retry *api.RetryError
	if errors.As(err, &retry) {
		klog.FromContext(ctx).V(2).Info("The update of a load balancer to changed nodes is delayed", "service", klog.KObj(s),
			"reason", err.Error())
		return nil
	}
	return err
}

// EnsureLoadBalancerDeleted removes all that a Service has, at all locations, and observes once more before it
// succeeds.
func (l *LoadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *corev1.Service) error {
	unlock, err := l.queues.services.wait(ctx, string(s.UID), nil)
	if err != nil {
		return err
	}
	defer unlock()
	all, lost := l.finder.standing(ctx, s)
	if err := l.removal(s).run(ctx, all, lost); err != nil {
		return err
	}
	if err := l.records.forget(ctx, s); err != nil {
		return err
	}
	l.forget(s)
	return nil
}

// ensure runs one attempt for a Service as the cache has it. The lock of the Service is held.
func (l *LoadBalancers) ensure(ctx context.Context, s *corev1.Service) (*corev1.LoadBalancerStatus, error) {
	if err := l.store.load(ctx); err != nil {
		return nil, err
	}
	if err := l.prover.takeOver(ctx, s); err != nil {
		return nil, err
	}
	in, err := l.planner.input(ctx, s)
	if err != nil {
		return nil, err
	}
	a := &attempt{
		planner:   l.planner,
		records:   l.records,
		locations: l.locations,
		queues:    l.queues,
		states:    l.states,
		events:    l.events,
		service:   s,
		wish:      service.For(in),
		blank: len(s.Status.LoadBalancer.Ingress) == 0 &&
			!l.states.get(s.UID).made,
	}
	return a.run(ctx)
}

// removal returns what removes all that a Service has.
func (l *LoadBalancers) removal(s *corev1.Service) removal {
	return removal{
		planner: l.planner,
		queues:  l.queues,
		events:  l.events,
		service: s,
	}
}

// forget drops the state of a Service of which nothing is left.
func (l *LoadBalancers) forget(s *corev1.Service) {
	l.events.sent.forget(s.UID)
	l.states.forget(s.UID)
}

// foreignClasses returns what releases Services whose class is another implementation's now.
func (l *LoadBalancers) foreignClasses() foreignClasses {
	return foreignClasses{
		planner: l.planner,
		records: l.records,
		finder:  l.finder,
		queues:  l.queues,
		states:  l.states,
		events:  l.events,
		remove:  l.removal,
		forget:  l.forget,
	}
}
