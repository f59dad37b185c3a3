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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// BalancerOptions say where load balancers are made.
type BalancerOptions struct {
	Session   func(context.Context) (*vcd.Session, error)
	Driver    *edge.Driver
	ClusterID string
	VDCs      []string            // names or URNs of those that networks are looked for in
	Places    []vcdconfig.Gateway // by name; the default has none
}

// A Balancer makes load balancers on edge gateways: their URNs are the ids of places.
type Balancer struct{ opts BalancerOptions }

var _ cpi.Balancer = (*Balancer)(nil)

// NewBalancer returns what makes load balancers.
func NewBalancer(opts BalancerOptions) *Balancer { return &Balancer{opts: opts} }

// Plan plans for what is wanted at a gateway.
func (b *Balancer) Plan(ctx context.Context, gateway string, request cpi.PlanRequest) (lb.Plan, error) {
	opts := edge.PlanOptions{Fresh: request.Fresh, Follow: request.Follow, NAT: b.translates()}
	return b.opts.Driver.Plan(ctx, gateway, request.Want, opts)
}

// translates says whether load balancers may be reached through DNAT rules: rights are the user's on all gateways.
func (b *Balancer) translates() bool {
	return slices.ContainsFunc(b.opts.Places, func(p vcdconfig.Gateway) bool { return p.OneArm != nil })
}

// Run runs a step on a gateway.
func (b *Balancer) Run(ctx context.Context, gateway string, step lb.Step) error {
	return b.opts.Driver.Run(ctx, gateway, step)
}

// Owners returns whoever of the cluster has something on a gateway.
func (b *Balancer) Owners(ctx context.Context, gateway string) ([]lb.Owner, error) {
	return b.opts.Driver.Owners(ctx, gateway, b.opts.ClusterID)
}

// Standing returns the objects of kinds that are seen on all gateways, whosever they are: all of them, or an error.
func (b *Balancer) Standing(ctx context.Context, kinds []lb.Kind) ([]lb.ObjectStatus, error) {
	var out []lb.ObjectStatus
	for _, place := range b.opts.Places {
		gateway, err := b.Place(ctx, place.Name)
		if err != nil {
			return nil, err
		}
		objects, err := b.opts.Driver.Existing(ctx, gateway, kinds)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// Place returns the URN of the edge gateway that the configuration gives a name.
func (b *Balancer) Place(ctx context.Context, name string) (string, error) {
	for _, p := range b.opts.Places {
		if p.Name != name {
			continue
		}
		id, err := b.find(ctx, p)
		if err != nil {
			return "", fmt.Errorf("%w: %w", kindOf(err), err)
		}
		return id, nil
	}
	return "", fmt.Errorf("there is no gateway %q in the configuration: %w", name, lb.ErrRefused)
}

func (b *Balancer) find(ctx context.Context, p vcdconfig.Gateway) (string, error) {
	session, err := b.opts.Session(ctx)
	if err != nil {
		return "", err
	}
	if p.ID != "" {
		found, err := session.Gateways.FindGateway(ctx, p.ID)
		return found.ID, err
	}
	for _, name := range b.opts.VDCs {
		vdc, err := session.VDCs.FindVDC(ctx, name)
		if err != nil {
			return "", err
		}
		network, err := session.Networks.FindNetwork(ctx, vdc, p.Network)
		switch {
		case errors.Is(err, vcd.ErrNotFound):
			continue
		case err != nil:
			return "", err
		case network.EdgeGateway.ID == "":
			return "", fmt.Errorf("network %s has no edge gateway: name a routed network, or loadbalancer.edgeGateway: %w", p.Network, lb.ErrRefused)
		}
		return network.EdgeGateway.ID, nil
	}
	return "", fmt.Errorf("network %q is in none of the cluster's VDCs, or may not be seen by this user: %w", p.Network, lb.ErrRefused)
}

// kindOf says what an error means to those who make load balancers.
func kindOf(err error) error {
	for _, target := range []error{vcd.ErrNotFound, vcd.ErrForbidden, vcd.ErrAmbiguous, vcd.ErrInvalid, vcd.ErrUnauthorized, lb.ErrRefused} {
		if errors.Is(err, target) {
			return lb.ErrRefused
		}
	}
	return lb.ErrUnknown
}
