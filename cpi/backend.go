// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"net/netip"

	cloudprovider "k8s.io/cloud-provider"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Backend is one cloud, ready to be used. Only Name, Machines and Explain are required.
type Backend struct {
	// Name of the cloud provider, and the scheme of its provider IDs.
	Name     string
	Machines Machines
	// Canonical returns a provider ID in lower case in the cloud's own form, also where another program wrote it in
	// another one; those of other clouds stay as they are. Nil: there is one form. Nodes keep what is written on them.
	Canonical func(providerID string) string
	// Balancer makes load balancers as Services asks for; nil: Services are left alone.
	Balancer Balancer
	Services service.Defaults
	// Routes of the network of pods; nil: the cloud has none.
	Routes cloudprovider.Routes
	// Explain returns what an error of the cloud means to users; false if the cloud can still be used.
	Explain func(error) (Trouble, bool)
	// Parts are started with the provider.
	Parts []Starter
	// Close ends sessions at the end of the process; nil: there are none.
	Close func(context.Context) error
}

// A Balancer makes load balancers at the locations of a cloud: gateways, networks or zones. A cloud without such has
// one location.
type Balancer interface {
	// Locate returns the id of the location that the configuration gives a name. It stays the same as long as the
	// location exists, however the configuration changes, and two names of one location have one id. All other methods
	// take ids, also of locations that the configuration does not name. Errors are as those of Plan.
	Locate(ctx context.Context, name string) (id string, err error)
	// Plan observes everything that an owner has at a location, and plans for what is desired. Errors wrap
	// [loadbalancer.ErrBusy], [loadbalancer.ErrRefused] or [loadbalancer.ErrUnknown]; an incomplete observation is an
	// error.
	Plan(ctx context.Context, location string, request PlanRequest) (loadbalancer.Plan, error)
	// Run runs a step of its own plan and waits until it is done, or ctx ends. Errors are as those of Plan.
	Run(ctx context.Context, location string, step loadbalancer.Step) error
	// Owners returns the Services of the cluster that have something at a location.
	Owners(ctx context.Context, location string) ([]loadbalancer.Owner, error)
	// NameOf returns the name by which logs know the load balancer of an owner.
	NameOf(owner loadbalancer.Owner) string
}

// A PlanRequest asks for a plan.
type PlanRequest struct {
	Want service.Desired
	// Fresh asks for an observation that is not older than the request.
	Fresh bool
	// Follow asks only for what keeps the members of a load balancer that stands in step with the nodes; everything
	// else is refused.
	Follow bool
	// Moved, in a request for absence, is the load balancer at its new location: what that still uses is left out of
	// the plan.
	Moved *Moved
}

// Moved is a load balancer at another location.
type Moved struct {
	Desired   service.Desired
	Addresses []netip.Addr
}
