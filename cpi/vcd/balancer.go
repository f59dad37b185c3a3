// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// BalancerOptions are what a [Balancer] is made of.
type BalancerOptions struct {
	Session   func(context.Context) (*vcd.Session, error)
	Driver    *edge.Driver
	ClusterID string
	VDCs      []string // names or URNs of those that networks are searched in
	Gateways  []vcdconfig.Gateway
	// Reporter is notified of what stands; nil: there is none.
	Reporter *Reporter
}

// A Balancer makes load balancers on edge gateways. Their URNs are the ids of locations.
type Balancer struct{ opts BalancerOptions }

var _ cpi.Balancer = (*Balancer)(nil)

// NewBalancer returns a balancer.
func NewBalancer(opts BalancerOptions) *Balancer {
	b := &Balancer{opts: opts}
	if opts.Reporter != nil {
		opts.Reporter.standing = b.standing
	}
	return b
}

// Plan implements [cpi.Balancer].
func (b *Balancer) Plan(ctx context.Context, gateway string, request cpi.PlanRequest) (plan.Plan, error) {
	want := desired(request.Want)
	opts := edge.PlanOptions{Fresh: request.Fresh, Follow: request.Follow, NAT: b.translates()}
	p, err := b.opts.Driver.Plan(ctx, gateway, want, opts)
	if b.opts.Reporter != nil && !request.Follow && ctx.Err() == nil {
		b.opts.Reporter.observed(gateway, want, p, err)
	}
	if err != nil {
		return plan.Plan{}, kindOf(err)
	}
	if request.Moved != nil {
		p.Steps = slices.DeleteFunc(p.Steps, func(s lb.Step) bool { return stillUsed(s, *request.Moved) })
	}
	return planOf(want, p), nil
}

// translates reports whether load balancers may be reached through DNAT rules: rights are the user's on all gateways.
func (b *Balancer) translates() bool {
	return slices.ContainsFunc(b.opts.Gateways, func(g vcdconfig.Gateway) bool { return g.OneArm != nil })
}

// stillUsed reports whether a load balancer that has moved to another gateway may use what a step removes: what is the
// organization's is seen from all gateways.
func stillUsed(s lb.Step, moved cpi.Moved) bool {
	switch s.Kind {
	case lb.KindAddress:
		return s.Address == nil || slices.Contains(moved.Addresses, s.Address.Value)
	case lb.KindCertificate:
		return desired(moved.Desired).UsesCertificate(s.Name)
	case lb.KindProfile:
		return desired(moved.Desired).OneArm != nil
	default:
		return !s.Kind.OnGateway()
	}
}

// Run implements [cpi.Balancer].
func (b *Balancer) Run(ctx context.Context, gateway string, s plan.Step) error {
	own, ok := s.(step)
	if !ok {
		return fmt.Errorf("%s is no step for an edge gateway: %w", s, plan.ErrRefused)
	}
	return kindOf(b.opts.Driver.Run(ctx, gateway, own.Step))
}

// Owners implements [cpi.Balancer]. It leaves out the cluster itself, its control-plane endpoint, and what VMware's CPI
// made.
func (b *Balancer) Owners(ctx context.Context, gateway string) ([]plan.Owner, error) {
	all, err := b.opts.Driver.Owners(ctx, gateway, b.opts.ClusterID)
	var out []plan.Owner
	for _, o := range all {
		if !o.WholeCluster() && !o.IsEndpoint() && !o.Old() {
			out = append(out, plan.Owner(o))
		}
	}
	return out, kindOf(err)
}

// NameOf implements [cpi.Balancer].
func (*Balancer) NameOf(owner plan.Owner) string { return lb.LoadBalancerName(lb.Owner(owner)) }

// standing returns the objects of kinds that are seen on all gateways, of all owners: all of them, or an error.
func (b *Balancer) standing(ctx context.Context, kinds []lb.Kind) ([]lb.ObjectStatus, error) {
	var out []lb.ObjectStatus
	for _, g := range b.opts.Gateways {
		id, err := b.Locate(ctx, g.Name)
		if err != nil {
			return nil, err
		}
		objects, err := b.opts.Driver.Existing(ctx, id, kinds)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// Locate returns the URN of the edge gateway that the configuration gives a name.
func (b *Balancer) Locate(ctx context.Context, name string) (string, error) {
	for _, g := range b.opts.Gateways {
		if g.Name != name {
			continue
		}
		id, err := b.find(ctx, g)
		return id, notFound(err)
	}
	return "", fmt.Errorf("there is no gateway %q in the configuration: %w", name, plan.ErrRefused)
}

func (b *Balancer) find(ctx context.Context, g vcdconfig.Gateway) (string, error) {
	session, err := b.opts.Session(ctx)
	if err != nil {
		return "", err
	}
	if g.ID != "" {
		found, err := session.Gateways.FindGateway(ctx, g.ID)
		return found.ID, err
	}
	for _, name := range b.opts.VDCs {
		vdc, err := session.VDCs.FindVDC(ctx, name)
		if hidden(err) && len(b.opts.VDCs) > 1 {
			continue
		}
		if err != nil {
			return "", err
		}
		network, err := session.Networks.FindNetwork(ctx, vdc, g.Network)
		switch {
		case errors.Is(err, vcd.ErrNotFound):
			continue
		case err != nil:
			return "", err
		case network.EdgeGateway.ID == "":
			return "", fmt.Errorf(
				"network %s has no edge gateway: name a routed network, or loadbalancer.edgeGateway: %w", g.Network,
				plan.ErrRefused)
		}
		return network.EdgeGateway.ID, nil
	}
	return "", fmt.Errorf("network %q is in none of the cluster's VDCs, or may not be seen by this user: %w", g.Network,
		plan.ErrRefused)
}

// notFound returns the error of a search for a gateway as the core knows it.
func notFound(err error) error {
	if err == nil {
		return nil
	}
	for _, target := range []error{
		vcd.ErrNotFound, vcd.ErrForbidden, vcd.ErrAmbiguous, vcd.ErrInvalid,
		vcd.ErrUnauthorized, plan.ErrRefused,
	} {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", plan.ErrRefused, err)
		}
	}
	return fmt.Errorf("%w: %w", plan.ErrUnknown, err)
}

// kindOf returns an error of package lb as one that the core knows. Its text stays.
func kindOf(err error) error {
	for own, core := range map[error]error{
		lb.ErrBusy:    plan.ErrBusy,
		lb.ErrRefused: plan.ErrRefused,
		lb.ErrUnknown: plan.ErrUnknown,
	} {
		if errors.Is(err, own) {
			err = &kindError{err, core}
		}
	}
	return err
}

type kindError struct {
	error

	kind error
}

// Unwrap makes errors.Is find both.
func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }
