// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
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
	// Client stores intended addresses and reads Secrets with certificates.
	Client kubernetes.Interface
	// Namespace of [KeySecret]; empty: kube-system.
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
	key       *keyLoader
	locations *locations
	// locks admits one worker per Service; queue some per location; choosing one per location while it chooses
	// addresses.
	locks, queue, choosing fairQueue

	events eventDeduper
	state  perService[serviceState]
	nodes  nodeLists
}

var _ cloudprovider.LoadBalancer = (*LoadBalancers)(nil)

// NewLoadBalancers returns the load balancers of Services.
func NewLoadBalancers(o LoadBalancerOptions) *LoadBalancers {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Defaults.Key == nil {
		o.Defaults.Key = &service.Key{}
	}
	o.AtOnce = cmp.Or(o.AtOnce, defaultAtOnce)
	o.Drift = cmp.Or(o.Drift, defaultDrift)
	key := &keyLoader{
		key:       o.Defaults.Key,
		client:    o.Client,
		namespace: cmp.Or(o.Namespace, metav1.NamespaceSystem),
		manifest:  cmp.Or(o.Manifest, "the manifest"),
	}
	if o.Self != nil {
		key.missing = func(message string) {
			o.Recorder.Event(o.Self, corev1.EventTypeWarning, reasonManifest, cut(message))
		}
	}
	return &LoadBalancers{
		opts:      o,
		key:       key,
		locations: &locations{balancer: o.Balancer, defaults: o.Defaults},
		queue:     fairQueue{slots: o.AtOnce},
		events:    eventDeduper{recorder: o.Recorder},
	}
}

// GetLoadBalancerName returns the name by which logs know a load balancer.
func (l *LoadBalancers) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return l.opts.Balancer.NameOf(l.opts.Defaults.OwnerOf(s))
}

// GetLoadBalancer reports whether anything of a Service is left anywhere, or is stored on one that wants none. Where
// that is unknown it fails: Kubernetes forgets a Service without a load balancer. So it waits for other work on the
// Service.
func (l *LoadBalancers) GetLoadBalancer(ctx context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus,
	bool, error,
) {
	unlock, err := l.locks.wait(ctx, string(s.UID), nil)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	all, lost := l.standing(ctx, s)
	unseen := []error{lost}
	for _, location := range all {
		switch nothing, err := l.nothing(ctx, s, location); {
		case err != nil:
			unseen = append(unseen, err) // what can be seen elsewhere is removed
		case !nothing:
			return s.Status.LoadBalancer.DeepCopy(), true, nil
		}
	}
	return nil, s.Spec.Type != corev1.ServiceTypeLoadBalancer && l.remembered(s), errors.Join(unseen...)
}

// EnsureLoadBalancer brings the load balancer of a Service to what the Service asks for, or returns what it waits for.
func (l *LoadBalancers) EnsureLoadBalancer(
	ctx context.Context, _ string, s *corev1.Service, _ []*corev1.Node,
) (*corev1.LoadBalancerStatus, error) {
	if s.Spec.LoadBalancerClass != nil {
		return nil, cloudprovider.ImplementedElsewhere
	}
	unlock, err := l.locks.wait(ctx, string(s.UID), nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now := l.current(s)
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
		klog.FromContext(ctx).V(2).Info("A load balancer has to wait to follow the nodes", "service", klog.KObj(s),
			"reason", err.Error())
		return nil
	}
	return err
}

// EnsureLoadBalancerDeleted removes all that a Service has, at all locations, and observes once more before it
// succeeds.
func (l *LoadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *corev1.Service) error {
	unlock, err := l.locks.wait(ctx, string(s.UID), nil)
	if err != nil {
		return err
	}
	defer unlock()
	all, lost := l.standing(ctx, s)
	if err := (removal{l, s}).run(ctx, all, lost); err != nil {
		return err
	}
	if err := l.unstore(ctx, s); err != nil {
		return err
	}
	l.forget(s)
	return nil
}

// forget drops the state of a Service of which nothing is left.
func (l *LoadBalancers) forget(s *corev1.Service) {
	l.events.sent.forget(s.UID)
	l.state.forget(s.UID)
}

// ensure runs one attempt for a Service as the cache has it. The lock of the Service is held.
func (l *LoadBalancers) ensure(ctx context.Context, s *corev1.Service) (*corev1.LoadBalancerStatus, error) {
	if err := l.key.load(ctx); err != nil {
		return nil, err
	}
	if err := l.reprove(ctx, s); err != nil {
		return nil, err
	}
	in, err := l.input(ctx, s)
	if err != nil {
		return nil, err
	}
	a := &attempt{
		balancers: l,
		service:   s,
		wish:      service.For(in),
		blank: len(s.Status.LoadBalancer.Ingress) == 0 &&
			!l.state.get(s.UID).made,
	}
	return a.run(ctx)
}

// cached returns a Service as the cache has it now; nil if it is gone.
func (l *LoadBalancers) cached(s *corev1.Service) *corev1.Service {
	now, err := l.opts.Services.Services(s.Namespace).Get(s.Name)
	if err != nil || now.UID != s.UID {
		return nil
	}
	return now
}

// current returns a Service as the cache has it now; nil if it shall have no load balancer of ours any more. A caller
// that waited for others may have an older one, as the service controller has when it follows changes of nodes: what
// was made or removed since must stay so.
func (l *LoadBalancers) current(s *corev1.Service) *corev1.Service {
	now := l.cached(s)
	if now == nil || now.DeletionTimestamp != nil || now.Spec.LoadBalancerClass != nil ||
		now.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	return now
}

// input gathers what the load balancer of a Service depends on.
func (l *LoadBalancers) input(ctx context.Context, s *corev1.Service) (service.Input, error) {
	in, err := l.identity(s)
	if err != nil {
		return in, err
	}
	if in.Nodes, in.Generation, err = l.nodes.next(l.opts.Nodes, in.Now); err != nil {
		return in, fmt.Errorf("listing nodes: %w", err)
	}
	in.Secrets = map[string]*corev1.Secret{}
	for _, name := range in.Dialect.SecretNames(s) {
		secret, err := l.opts.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			in.Secrets[name] = secret
		case apierrors.IsForbidden(err):
			in.Hidden = append(in.Hidden, name)
		case !apierrors.IsNotFound(err):
			return in, fmt.Errorf("reading Secret %s: %w", name, err)
		}
	}
	return in, nil
}

// identity gathers what identifies a load balancer.
func (l *LoadBalancers) identity(s *corev1.Service) (service.Input, error) {
	in := service.Input{Service: s, Defaults: l.opts.Defaults, Now: l.opts.Clock.Now()}
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return in, fmt.Errorf("listing Services: %w", err)
	}
	for _, other := range all {
		balanced := other.Spec.Type == corev1.ServiceTypeLoadBalancer || servicehelpers.HasLBFinalizer(other)
		if balanced && other.Name == s.Name && other.Namespace != s.Namespace {
			in.Duplicates = append(in.Duplicates, other)
		}
	}
	name := in.Dialect.Names().Intent
	intent := l.state.get(s.UID).intent
	if intent != "" && s.Annotations[name] != intent {
		in.Service = s.DeepCopy() // the cache is older than what was written
		metav1.SetMetaDataAnnotation(&in.Service.ObjectMeta, name, intent)
	}
	return in, nil
}

// absent returns the wish for nothing at a location.
func (l *LoadBalancers) absent(s *corev1.Service, location string) (plan.Desired, error) {
	in, err := l.identity(s)
	if err != nil {
		return plan.Desired{}, err
	}
	if in.Nodes, err = l.opts.Nodes.List(labels.Everything()); err != nil {
		return plan.Desired{}, fmt.Errorf("listing nodes: %w", err)
	}
	d := service.Absent(in)
	others, err := l.others(s, location)
	d.Accompanied = len(others) > 0
	return d, err
}

// planAbsent plans for nothing at a location.
func (l *LoadBalancers) planAbsent(ctx context.Context, s *corev1.Service, location string,
	request PlanRequest,
) (plan.Plan, error) {
	want, err := l.absent(s, location)
	if err != nil {
		return plan.Plan{}, err
	}
	request.Want = want
	return l.opts.Balancer.Plan(ctx, location, request)
}

// others returns the other Services that have, or are about to have, a load balancer at a location.
func (l *LoadBalancers) others(s *corev1.Service, location string) ([]*corev1.Service, error) {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	var out []*corev1.Service
	for _, other := range all {
		if other.UID != s.UID && repairable(other) &&
			l.locations.known(l.opts.Defaults.Asked(other).Location) == location {
			out = append(out, other)
		}
	}
	return out, nil
}

// standing returns the ids of the locations where something of a Service may be that has to be removed: the stored
// ones, else those where the cloud shows something, or else all. It fails if one of them cannot be found.
func (l *LoadBalancers) standing(ctx context.Context, s *corev1.Service) ([]string, error) {
	if err := l.key.load(ctx); err != nil {
		return nil, err
	}
	places := l.stored(s)
	if stored := l.opts.Defaults.Stored(s); len(places) == 0 && len(stored.Unproved.Standing) > 0 {
		n, err := l.confirmed(ctx, s, stored)
		if err != nil {
			return nil, err
		}
		places = n.locations
	}
	if ids, searched, err := l.search(ctx, s, places); searched {
		return ids, err
	}
	ids, err := l.locations.resolve(ctx, places)
	if err != nil {
		l.stays(s, err, fmt.Sprintf("it may have been on a %s of the configuration that cannot be found: correct it "+
			"there, or remove it if it is gone "+
			"from the cloud, and restart the cloud controller manager", l.locations.noun()))
	}
	return ids, err
}

// nothing reports whether nothing of a Service is left at a location. A cached observation only proves that something
// is: another process may have made more since.
func (l *LoadBalancers) nothing(ctx context.Context, s *corev1.Service, location string) (bool, error) {
	for _, fresh := range []bool{false, true} {
		p, err := l.planAbsent(ctx, s, location, PlanRequest{Fresh: fresh})
		if err != nil {
			l.stays(s, err, fmt.Sprintf("it cannot be seen what is left of it at %s: if the provider has deleted "+
				"this %s, take it out of annotation %s",
				location, l.locations.noun(), l.opts.Defaults.Dialect.Names().Standing))
			return false, fmt.Errorf("looking for what is left of the load balancer: %w", err)
		}
		if !p.Done() {
			return false, nil
		}
	}
	return true, nil
}

// stays emits why a Service cannot go, with its remedy, if it takes a user's action.
func (l *LoadBalancers) stays(s *corev1.Service, err error, remedy string) {
	if errors.Is(err, plan.ErrRefused) {
		reason := strings.ReplaceAll(err.Error(), "\n", "; ")
		message := fmt.Sprintf("The load balancer cannot be removed: %s (%s)", remedy, reason)
		l.events.notices(s, "stays: "+remedy, []plan.Finding{{
			Reason:  reasonStays,
			Message: message,
		}})
	}
}

// runSteps runs steps in their order, and returns how many were done.
func (l *LoadBalancers) runSteps(ctx context.Context, s *corev1.Service, location string, steps []plan.Step) (int,
	error,
) {
	log := klog.FromContext(ctx)
	for i, step := range steps {
		log.Info("Changing the load balancer", "service", klog.KObj(s), "location", location, "step", step.String())
		if err := l.opts.Balancer.Run(ctx, location, step); err != nil {
			return i, fmt.Errorf("%s: %w", step, err)
		}
	}
	return len(steps), nil
}
