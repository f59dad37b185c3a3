package cpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
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

// drift repairs what changed behind our back: Kubernetes asks for a load balancer only when its Service changes. Each place has somebody who
// does so, lest one that hangs holds up the others.
func (l *LoadBalancers) drift(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), l.opts.Synced...) {
		return
	}
	due := map[string]chan struct{}{}
	for _, name := range l.configured() {
		due[name] = make(chan struct{}, 1)
		go l.tend(ctx, name, due[name])
	}
	orphans, leavers := make(chan struct{}, 1), make(chan struct{}, 1)
	go l.watchOrphans(ctx, orphans)
	go l.watchLeavers(ctx, leavers)
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-l.nudge:
		case <-l.opts.Clock.After(l.opts.Drift*9/10 + rand.N(l.opts.Drift/5)): //nolint:gosec // jitter
		}
		for _, place := range due {
			poke(place)
		}
		poke(leavers)
		if round%orphanRounds == 0 {
			poke(orphans)
		}
	}
}

// poke tells whoever listens; one who has not listened yet is told once.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tend brings the load balancers of one place to what their Services ask for, whenever it is due.
func (l *LoadBalancers) tend(ctx context.Context, place string, due <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		all, err := l.opts.Services.List(labels.Everything())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Listing Services")
			continue
		}
		for _, s := range all {
			if ctx.Err() == nil && l.repairable(s) && s.Annotations[service.GatewayAnnotation] == place {
				l.repair(ctx, s)
			}
		}
	}
}

// watchOrphans looks for what no Service owns, whenever it is due, and forgets Services that are gone.
func (l *LoadBalancers) watchOrphans(ctx context.Context, due <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		l.reportOrphans(ctx)
		l.forgetTheGone()
	}
}

// forgetTheGone forgets what is remembered of Services that are gone, and of which nothing was to be deleted.
func (l *LoadBalancers) forgetTheGone() {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return
	}
	here := map[types.UID]bool{}
	for _, s := range all {
		here[s.UID] = true
	}
	l.memories.keep(here)
	l.teller.keep(here)
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
	case status == nil || servicehelpers.LoadBalancerStatusEqual(&s.Status.LoadBalancer, status):
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
	all, err := l.all(ctx)
	if err != nil {
		log.Error(err, "Looking for load balancers without a Service")
	}
	for _, place := range all {
		owners, err := l.opts.Balancer.Owners(ctx, place)
		if err != nil {
			log.Error(err, "Looking for load balancers without a Service", "place", place)
			continue
		}
		var orphans []string
		for _, o := range owners {
			if !o.WholeCluster() && !o.Old() && !l.known(o) {
				log.Info("A load balancer has no Service: remove its objects in the cloud if no other cluster has this cluster's id", "place", place, "owner", o.String(),
					"uid", o.UID, "name", lb.LoadBalancerName(o))
				orphans = append(orphans, fmt.Sprintf("%s (uid %s)", o, o.UID))
			}
		}
		l.tellOrphans(place, orphans)
	}
}

// tellOrphans tells people of load balancers that no Service owns, again as often as they are looked for.
func (l *LoadBalancers) tellOrphans(place string, orphans []string) {
	if len(orphans) == 0 || l.opts.Self == nil {
		return
	}
	slices.Sort(orphans)
	l.opts.Recorder.Event(l.opts.Self, corev1.EventTypeWarning, reasonOrphans, cut(fmt.Sprintf("%d load balancers at %s have the id of this cluster and no Service: remove what their descriptions "+
		"name there, unless another cluster was given the same id by mistake: %s", len(orphans), place, strings.Join(orphans, ", "))))
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
