package cpi

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// watchLeavers gives up what Services of other classes have here, whenever it is due.
func (l *LoadBalancers) watchLeavers(ctx context.Context, due <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		l.relinquish(ctx)
	}
}

// relinquish removes what Services have here that are others' by now. Nobody tells us of one whose class changed while we did not run: to Kubernetes'
// own controller a Service of a class is none of its business until it is deleted.
func (l *LoadBalancers) relinquish(ctx context.Context) {
	log := klog.FromContext(ctx)
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		log.Error(err, "Listing Services")
		return
	}
	for _, s := range all {
		if ctx.Err() != nil || !theirs(s) {
			continue
		}
		if err := l.giveUp(ctx, s); err != nil {
			log.Error(err, "Giving up the load balancer of a Service that is of another class by now", "service", klog.KObj(s))
		}
	}
}

// theirs says whether a Service is another implementation's and was ours before, as what we wrote on it tells.
func theirs(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass != nil && s.DeletionTimestamp == nil && s.Annotations[service.PlacesAnnotation] != ""
}

// giveUp removes what a Service has here, unless its clients are still told an address of it: as long as they are, nobody else serves them. That
// may be so because another one of us, with the same id of the cluster, looks after that class.
func (l *LoadBalancers) giveUp(ctx context.Context, s *corev1.Service) error {
	unlock, ok := l.locks.try(string(s.UID))
	if !ok {
		return nil
	}
	defer unlock()
	places, err := l.standing(ctx, s)
	if err != nil {
		return err
	}
	for _, place := range places {
		switch address, err := l.publishedAt(ctx, s, place); {
		case err != nil:
			return err
		case address.IsValid():
			l.teller.notices(s, []lb.Finding{{Reason: reasonLeft, Message: fmt.Sprintf("the Service is of another class by now, and its status still has the address %s from before: "+
				"what stands there is removed when whoever serves that class has published another one", address)}})
			return nil
		}
	}
	if err := l.removeFrom(ctx, s, places); err != nil {
		return err
	}
	defer l.forget(s)
	return (&ensuring{LoadBalancers: l, service: s}).write(ctx, note{addresses: []netip.Addr{}, places: []string{}})
}

// publishedAt returns an address that a Service has at a place and that its clients are told.
func (l *LoadBalancers) publishedAt(ctx context.Context, s *corev1.Service, place string) (netip.Addr, error) {
	want, err := l.absent(s, place)
	if err != nil {
		return netip.Addr{}, err
	}
	plan, err := l.opts.Balancer.Plan(ctx, place, PlanRequest{Want: want})
	if err != nil {
		return netip.Addr{}, err
	}
	for _, o := range plan.Status.Objects {
		if slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP == o.Address.String() }) {
			return o.Address, nil
		}
	}
	return netip.Addr{}, nil
}
