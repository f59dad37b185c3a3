// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A planner observes the load balancers of Services in the cloud, and plans changes.
type planner struct {
	balancer  Balancer
	defaults  service.Defaults
	client    kubernetes.Interface // for Secrets with certificates
	services  corelisters.ServiceLister
	nodes     corelisters.NodeLister
	members   nodeLists
	locations *locations
	states    *perService[serviceState]
	clock     clock.WithTicker
}

// input collects everything that the load balancer of a Service depends on.
func (p *planner) input(ctx context.Context, s *corev1.Service) (service.Input, error) {
	in, err := p.identity(s)
	if err != nil {
		return in, err
	}
	if in.Nodes, in.Generation, err = p.members.next(p.nodes, in.Now); err != nil {
		return in, fmt.Errorf("listing nodes: %w", err)
	}
	in.Secrets = map[string]*corev1.Secret{}
	for _, name := range in.Dialect.SecretNames(s) {
		secret, err := p.client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
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

// identity collects the data that identifies a load balancer.
func (p *planner) identity(s *corev1.Service) (service.Input, error) {
	in := service.Input{Service: s, Defaults: p.defaults, Now: p.clock.Now()}
	all, err := p.services.List(labels.Everything())
	if err != nil {
		return in, fmt.Errorf("listing Services: %w", err)
	}
	for _, other := range all {
		balanced := other.Spec.Type == corev1.ServiceTypeLoadBalancer || servicehelpers.HasLBFinalizer(other)
		if balanced && other.Name == s.Name && other.Namespace != s.Namespace {
			in.Duplicates = append(in.Duplicates, other)
		}
	}
	return in, nil
}

// planAbsent plans the removal of all objects of a Service at a location.
func (p *planner) planAbsent(ctx context.Context, s *corev1.Service, location string, request PlanRequest) (loadbalancer.Plan, error) {
	want, err := p.absent(s, location)
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	request.Want = want
	return p.balancer.Plan(ctx, location, request)
}

// absent returns the desired state without any objects at a location.
func (p *planner) absent(s *corev1.Service, location string) (service.Desired, error) {
	in, err := p.identity(s)
	if err != nil {
		return service.Desired{}, err
	}
	if in.Nodes, err = p.nodes.List(labels.Everything()); err != nil {
		return service.Desired{}, fmt.Errorf("listing nodes: %w", err)
	}
	d := service.Absent(in)
	others, err := p.others(s, location)
	d.Accompanied = len(others) > 0
	return d, err
}

// others returns the other Services that have, or are about to get, a load balancer at a location.
func (p *planner) others(s *corev1.Service, location string) ([]*corev1.Service, error) {
	all, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	var out []*corev1.Service
	for _, other := range all {
		if other.UID != s.UID && repairable(other) &&
			p.locations.known(p.defaults.Settings(other).Location) == location {
			out = append(out, other)
		}
	}
	return out, nil
}

// repairable reports whether Kubernetes handed a Service to this process. Nothing may be created before it has the
// finalizer.
func repairable(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil &&
		s.DeletionTimestamp == nil &&
		servicehelpers.HasLBFinalizer(s)
}

// runSteps runs steps in order, and returns the number of completed steps.
func (p *planner) runSteps(ctx context.Context, s *corev1.Service, location string, steps []loadbalancer.Step) (int, error) {
	log := klog.FromContext(ctx)
	for i, step := range steps {
		log.Info("Changing the load balancer", "service", klog.KObj(s), "location", location, "step", step.String())
		if err := p.balancer.Run(ctx, location, step); err != nil {
			return i, fmt.Errorf("%s: %w", step, err)
		}
	}
	return len(steps), nil
}
