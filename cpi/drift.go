package cpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// orphanRounds is after how many rounds of drift what no Service owns is looked for.
const orphanRounds = 60

// Start begins to look at all load balancers now and then, and when the addresses of nodes change. It ends with ctx.
func (l *LoadBalancers) Start(ctx context.Context) {
	l.watchNodes(ctx)
	go l.drift(ctx)
}

// drift repairs what changed behind our back: Kubernetes asks for a load balancer only when its Service changes.
func (l *LoadBalancers) drift(ctx context.Context) {
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-l.nudge:
		case <-l.opts.Clock.After(l.opts.Drift*9/10 + rand.N(l.opts.Drift/5)): //nolint:gosec // jitter
		}
		l.Repair(ctx)
		if round%orphanRounds == 0 {
			l.reportOrphans(ctx)
		}
	}
}

// Repair brings all load balancers to what their Services ask for. Places are worked on beside each other.
func (l *LoadBalancers) Repair(ctx context.Context) {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing Services")
		return
	}
	byPlace := map[string][]*corev1.Service{}
	for _, s := range all {
		if l.repairable(s) {
			place := s.Annotations[service.GatewayAnnotation] // a typo is a place of its own, which does no harm
			byPlace[place] = append(byPlace[place], s)
		}
	}
	var wg sync.WaitGroup
	for _, services := range byPlace {
		wg.Go(func() {
			for _, s := range services {
				if ctx.Err() == nil {
					l.repair(ctx, s)
				}
			}
		})
	}
	wg.Wait()
}

// repairable says whether Kubernetes has handed a Service to us: before its finalizer is there, nothing may be made.
func (l *LoadBalancers) repairable(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.DeletionTimestamp == nil && servicehelpers.HasLBFinalizer(s)
}

// repair looks at one load balancer, unless somebody is working on it. What it waits for, the next round finds.
func (l *LoadBalancers) repair(ctx context.Context, s *corev1.Service) {
	unlock, ok := l.locks.try(string(s.UID))
	if !ok {
		return
	}
	defer unlock()
	status, err := l.ensure(ctx, s)
	log := klog.FromContext(ctx)
	switch {
	case err != nil && !waits(err):
		log.Error(err, "Looking at a load balancer", "service", klog.KObj(s))
		return
	case err != nil || servicehelpers.LoadBalancerStatusEqual(&s.Status.LoadBalancer, status):
		return
	}
	updated := s.DeepCopy()
	updated.Status.LoadBalancer = *status
	if _, err := servicehelpers.PatchService(l.opts.Client.CoreV1(), s, updated); err != nil {
		log.Error(err, "Publishing the status of a load balancer", "service", klog.KObj(s))
	}
}

// waits says whether an error only asks to be called again.
func waits(err error) bool {
	var retry *api.RetryError
	return errors.As(err, &retry) || err == cloudprovider.ImplementedElsewhere //nolint:errorlint // never wrapped
}

// reportOrphans tells of load balancers that no Service owns, such as after a finalizer was removed by force. They are not removed: another
// cluster that was given our id by mistake would lose its own.
func (l *LoadBalancers) reportOrphans(ctx context.Context) {
	log := klog.FromContext(ctx)
	for _, place := range l.places() {
		owners, err := l.opts.Balancer.Owners(ctx, place)
		if err != nil {
			log.Error(err, "Looking for load balancers without a Service", "place", place)
			continue
		}
		for _, o := range owners {
			if !o.WholeCluster() && !o.Old() && !l.known(o) {
				log.Info("A load balancer has no Service: remove its objects in the cloud if no other cluster has this cluster's id", "place", place, "owner", o.String(),
					"uid", o.UID, "name", lb.LoadBalancerName(o))
			}
		}
	}
}

func (l *LoadBalancers) known(o lb.Owner) bool {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return true
	}
	for _, s := range all {
		if string(s.UID) == o.UID {
			return true
		}
	}
	return false
}
