// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// BalancerOptions configure a [Balancer].
type BalancerOptions struct {
	Session   func(context.Context) (*vcd.Session, error)
	Driver    *edge.Driver
	ClusterID string
	VDCs      []string // names or URNs of the VDCs in which networks are searched
	Gateways  []vcdconfig.Gateway
	// Reporter is notified of existing objects. Nil disables reports.
	Reporter *Reporter
}

// A Balancer implements load balancers on edge gateways. The IDs of its locations are URNs of edge gateways.
type Balancer struct{ opts BalancerOptions }

var _ cpi.Balancer = (*Balancer)(nil)

// NewBalancer returns a balancer.
func NewBalancer(opts BalancerOptions) *Balancer {
	b := &Balancer{opts: opts}
	if opts.Reporter != nil {
		opts.Reporter.existing = b.existing
	}
	return b
}

// Plan implements [cpi.Balancer].
func (b *Balancer) Plan(ctx context.Context, gateway string, request cpi.PlanRequest) (loadbalancer.Plan, error) {
	want := desired(request.Want)
	opts := edge.PlanOptions{Fresh: request.Fresh, Follow: request.Follow, NAT: b.translates()}
	p, err := b.opts.Driver.Plan(ctx, gateway, want, opts)
	if b.opts.Reporter != nil && !request.Follow && ctx.Err() == nil {
		b.opts.Reporter.observed(gateway, want, p, err)
	}
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	if request.Moved != nil {
		p.Steps = slices.DeleteFunc(p.Steps, func(s loadbalancer.Step) bool { return stillUsed(s, *request.Moved) })
	}
	return p, nil
}

// translates reports whether load balancers may be reached through DNAT rules on any gateway. A user's rights are the
// same on all gateways.
func (b *Balancer) translates() bool {
	return slices.ContainsFunc(b.opts.Gateways, func(g vcdconfig.Gateway) bool { return g.OneArm != nil })
}

// stillUsed reports whether a load balancer that moved to another gateway may still use the object that a step removes.
// Objects of the organization are visible from all gateways.
func stillUsed(planned loadbalancer.Step, moved cpi.Moved) bool {
	s, _ := planned.(lb.Step) // edge gateways have no other steps
	switch s.Kind {
	case lb.KindAddress:
		return s.Address == nil || slices.Contains(moved.Addresses, s.Address.Value)
	case lb.KindCertificate:
		return desired(moved.Desired).UsesCertificate(s.Name)
	case lb.KindProfile:
		return desired(moved.Desired).OneArm != nil
	default:
		return !lb.OnGateway(s.Kind)
	}
}

// Run implements [cpi.Balancer].
func (b *Balancer) Run(ctx context.Context, gateway string, s loadbalancer.Step) error {
	return b.opts.Driver.Run(ctx, gateway, s)
}

// Owners implements [cpi.Balancer]. It leaves out the cluster itself, its control plane endpoint, and objects that
// VMware's CPI created.
func (b *Balancer) Owners(ctx context.Context, gateway string) ([]loadbalancer.Owner, error) {
	all, err := b.opts.Driver.Owners(ctx, gateway, b.opts.ClusterID)
	var out []loadbalancer.Owner
	for _, o := range all {
		if !o.WholeCluster() && !o.IsEndpoint() && !o.Inherited() {
			out = append(out, o)
		}
	}
	return out, err
}

// NameOf implements [cpi.Balancer].
func (*Balancer) NameOf(owner loadbalancer.Owner) string { return lb.LoadBalancerName(owner) }

// existing returns the existing objects of kinds that are visible from all gateways, of all owners. An incomplete
// result is an error.
func (b *Balancer) existing(ctx context.Context, kinds []loadbalancer.Kind) ([]loadbalancer.Object, error) {
	var out []loadbalancer.Object
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

// Locate returns the URN of the edge gateway with this name in the configuration. Errors are of type [*locateError].
func (b *Balancer) Locate(ctx context.Context, name string) (string, error) {
	for _, g := range b.opts.Gateways {
		if g.Name != name {
			continue
		}
		id, err := b.find(ctx, g)
		if err != nil {
			return id, &locateError{locateFailure(err)}
		}
		return id, nil
	}
	return "", &locateError{
		fmt.Errorf("the configuration has no gateway %q: %w", name, loadbalancer.ErrRefused),
	}
}

// A locateError means that an edge gateway cannot be found. It affects all load balancers on it.
type locateError struct{ error }

// Unwrap returns the cause.
func (e *locateError) Unwrap() error { return e.error }

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
				loadbalancer.ErrRefused)
		}
		return network.EdgeGateway.ID, nil
	}
	return "", fmt.Errorf("network %q does not exist in the cluster's VDCs, or is not visible to this user: %w", g.Network,
		loadbalancer.ErrRefused)
}

// locateFailure converts an error of a search for a gateway to an error that the core handles.
func locateFailure(err error) error {
	for _, target := range []error{
		vcd.ErrNotFound, vcd.ErrForbidden, vcd.ErrAmbiguous, vcd.ErrInvalid,
		vcd.ErrUnauthorized, loadbalancer.ErrRefused,
	} {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", loadbalancer.ErrRefused, err)
		}
	}
	return fmt.Errorf("%w: %w", loadbalancer.ErrUnknown, err)
}
