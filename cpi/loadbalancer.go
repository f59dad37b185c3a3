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

// LoadBalancerOptions configure [LoadBalancers].
type LoadBalancerOptions struct {
	Balancer Balancer
	// Searcher finds the objects of a Service at all locations. Nil means that the cloud cannot search.
	Searcher Searcher
	Defaults service.Defaults
	// Client stores the records of Services and reads Secrets with certificates.
	Client kubernetes.Interface
	// Namespace of the ConfigMap [RecordsName]; empty means kube-system.
	Namespace string
	// Manifest is the name of the release file with all required permissions, for users.
	Manifest string
	Services corelisters.ServiceLister
	Nodes    corelisters.NodeLister
	// NodeInformer reports changes of nodes. With nil, changes are only found when Services are synced and by drift
	// checks.
	NodeInformer cache.SharedInformer
	// Synced report whether the caches of Services and Nodes are filled. Drift is not repaired before.
	Synced   []cache.InformerSynced
	Recorder record.EventRecorder
	// Self is the object of events about load balancers without a Service. With nil, they are only logged.
	Self *corev1.ObjectReference
	// AtOnce is the number of load balancers that are reconciled concurrently at one location; 0 means 5. Further ones
	// are retried, so that a slow location does not block the others.
	AtOnce int
	// Drift is the interval at which all load balancers are compared with the cloud; 0 means 1 min.
	Drift time.Duration
	Clock clock.WithTicker
}

// LoadBalancers implement Services of type LoadBalancer: observe, plan, run the steps, and repeat until the plan is
// empty. Owned objects are found by their ownership markers. Only data that caches may not show yet is kept here.
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

// NewLoadBalancers returns the implementation of load balancers.
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

// newRecordStore returns the store for the records of Services.
func newRecordStore(o LoadBalancerOptions) *recordStore {
	store := &recordStore{
		client:    o.Client,
		namespace: cmp.Or(o.Namespace, metav1.NamespaceSystem),
		prefix:    recordPrefix(o.Defaults),
		manifest:  cmp.Or(o.Manifest, "the manifest"),
	}
	if o.Self != nil {
		store.reportMissing = func(message string) {
			o.Recorder.Event(o.Self, corev1.EventTypeWarning, reasonManifest, cut(message))
		}
	}
	return store
}

// GetLoadBalancerName returns the name of a load balancer in logs.
func (l *LoadBalancers) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return l.opts.Balancer.NameOf(l.opts.Defaults.OwnerOf(s))
}

// GetLoadBalancer reports whether any object of a Service remains at any location, or whether a Service that no longer
// requests a load balancer still has a record. It fails if that is unknown, because Kubernetes drops a Service without
// a load balancer. For the same reason it waits for other work on the Service.
func (l *LoadBalancers) GetLoadBalancer(ctx context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	unlock, err := l.queues.services.wait(ctx, string(s.UID), nil)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	all, lost := l.finder.occupied(ctx, s)
	unseen := []error{lost}
	for _, location := range all {
		switch nothing, err := l.finder.isEmptyAt(ctx, s, location); {
		case err != nil:
			unseen = append(unseen, err) // objects that are visible elsewhere are still removed
		case !nothing:
			return s.Status.LoadBalancer.DeepCopy(), true, nil
		}
	}
	return nil, s.Spec.Type != corev1.ServiceTypeLoadBalancer && l.records.remembered(s), errors.Join(unseen...)
}

// EnsureLoadBalancer reconciles the load balancer of a Service. It waits for other work at its location, and returns a
// retry error if it must wait longer.
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
	return l.ensureCurrent(ctx, s, slotTimeout)
}

// UpdateLoadBalancer applies changes of nodes, and all other changes. It does not wait for other work: the service
// controller updates all Services before it looks at the next change of nodes, and drift repair follows soon.
func (l *LoadBalancers) UpdateLoadBalancer(ctx context.Context, _ string, s *corev1.Service, _ []*corev1.Node) error {
	if s.Spec.LoadBalancerClass != nil {
		return cloudprovider.ImplementedElsewhere
	}
	log := klog.FromContext(ctx).V(2).WithValues("service", klog.KObj(s))
	const delayed = "The update of a load balancer to changed nodes is delayed"
	unlock, ok := l.queues.services.try(string(s.UID))
	if !ok {
		log.Info(delayed, "reason", "other work on the Service runs")
		return nil
	}
	defer unlock()
	_, err := l.ensureCurrent(ctx, s, 0)
	var retry *api.RetryError
	if errors.As(err, &retry) {
		log.Info(delayed, "reason", err.Error())
		return nil
	}
	return err
}

// ensureCurrent reconciles the load balancer of a Service as it is in the cache. It waits up to patience for a slot at
// its location. The caller holds the lock of the Service.
func (l *LoadBalancers) ensureCurrent(ctx context.Context, s *corev1.Service, patience time.Duration) (*corev1.LoadBalancerStatus, error) {
	now := l.records.current(s)
	if now == nil {
		return s.Status.LoadBalancer.DeepCopy(), nil
	}
	return l.ensure(ctx, now, patience)
}

// EnsureLoadBalancerDeleted removes all objects of a Service at all locations. It succeeds only after another
// observation.
func (l *LoadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *corev1.Service) error {
	unlock, err := l.queues.services.wait(ctx, string(s.UID), nil)
	if err != nil {
		return err
	}
	defer unlock()
	all, lost := l.finder.occupied(ctx, s)
	if err := l.removal(s).run(ctx, all, lost); err != nil {
		return err
	}
	if err := l.records.forget(ctx, s); err != nil {
		return err
	}
	l.forget(s)
	return nil
}

// ensure runs one attempt for a Service from the cache. It waits up to patience for a slot at the location. The caller
// holds the lock of the Service.
func (l *LoadBalancers) ensure(ctx context.Context, s *corev1.Service, patience time.Duration) (*corev1.LoadBalancerStatus, error) {
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
		patience:  patience,
		request:   service.For(in),
		neverReady: len(s.Status.LoadBalancer.Ingress) == 0 &&
			!l.states.get(s.UID).provisioned,
	}
	a.notePlannedMembers()
	defer a.clearPlannedMembers()
	return a.run(ctx)
}

// removal returns the removal of all objects of a Service.
func (l *LoadBalancers) removal(s *corev1.Service) removal {
	return removal{
		planner: l.planner,
		queues:  l.queues,
		events:  l.events,
		service: s,
	}
}

// forget drops the state of a Service whose objects are all removed.
func (l *LoadBalancers) forget(s *corev1.Service) {
	l.events.sent.forget(s.UID)
	l.states.forget(s.UID)
}

// foreignClasses returns the cleanup of Services whose class now belongs to another implementation.
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
