package cpi

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// choose plans. What a plan is about to use is taken for all others at once, not only when it stands: else two Services that come
// at the same time were given the same address.
func (e *ensuring) choose(ctx context.Context) (lb.Plan, error) {
	unlock, err := e.choosing.lock(ctx, e.at)
	if err != nil {
		return lb.Plan{}, err
	}
	defer unlock()
	want := e.wish.Desired
	if want.Reserved, err = e.reserved(); err != nil {
		return lb.Plan{}, err
	}
	plan, err := e.opts.Balancer.Plan(ctx, e.at, PlanRequest{Want: want})
	if err != nil {
		return lb.Plan{}, err
	}
	uses := usesOf(want, plan)
	e.memories.change(e.service.UID, func(m *memory) { m.place, m.uses = e.at, uses })
	return plan, nil
}

// reserved is what others have, or are about to have: what is being made, also for Services that are going by now, and what
// was promised to those that stay.
func (e *ensuring) reserved() ([]lb.Use, error) {
	others, err := e.others(e.service, e.at)
	if err != nil {
		return nil, err
	}
	out := e.memories.uses(e.at, e.service.UID)
	for _, other := range others {
		out = append(out, service.Promised(e.opts.Defaults.Cluster, other, e.service)...)
	}
	return out, nil
}

// others are the other Services that have, or are about to have, a load balancer at a place.
func (l *LoadBalancers) others(s *corev1.Service, place string) ([]*corev1.Service, error) {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	var out []*corev1.Service
	for _, other := range all {
		if other.UID != s.UID && l.found.id(other.Annotations[service.GatewayAnnotation]) == place && l.repairable(other) {
			out = append(out, other)
		}
	}
	return out, nil
}

// usesOf are the addresses and ports that a plan is about to use.
func usesOf(d lb.Desired, plan lb.Plan) []lb.Use {
	marker := lb.Marker{Owner: d.Owner, Share: d.Share}
	use := func(step lb.Step, a netip.Addr, p lb.Protocol, port int) lb.Use {
		return lb.Use{Address: a, Protocol: p, Port: port, Kind: step.Kind, Name: step.Name, Marker: marker}
	}
	var out []lb.Use
	for _, step := range plan.Steps {
		switch {
		case step.Service != nil:
			for _, a := range step.Service.VIPs {
				out = append(out, use(step, a, step.Service.Protocol, step.Service.Port))
			}
		case step.Rule != nil:
			out = append(out, use(step, step.Rule.External, "", step.Rule.ExternalPort))
		}
	}
	return out
}
