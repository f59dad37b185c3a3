// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"net/netip"

	cloudprovider "k8s.io/cloud-provider"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Backend is the implementation of one cloud. Only Name, Machines and Explain are required.
type Backend struct {
	// Name of the cloud provider, and the scheme of its provider IDs.
	Name     string
	Machines Machines
	// Canonical returns a provider ID in the cloud's canonical form, in lower case, also if another program wrote it in
	// another form. It returns the IDs of other clouds unchanged. Nil means that there is only one form. Provider IDs
	// on Nodes are not rewritten.
	Canonical func(providerID string) string
	// Balancer implements Services of type LoadBalancer. Nil means that Services are ignored.
	Balancer Balancer
	Services service.Defaults
	// Routes implements the routes of the pod network. Nil means that the cloud has none.
	Routes cloudprovider.Routes
	// Explain returns the meaning of an error of the cloud for users. It returns false if the cloud is still usable.
	Explain func(error) (Trouble, bool)
	// Parts are started together with the provider.
	Parts []Starter
	// Close ends sessions when the process exits. Nil means that there are no sessions.
	Close func(context.Context) error
}

// A Balancer implements load balancers at the locations of a cloud: gateways, networks or zones. A cloud without such a
// concept has one location.
type Balancer interface {
	// Locate returns the ID of the location with this name in the configuration. The ID is stable while the location
	// exists, even if the configuration changes. Two names of the same location have the same ID. All other methods
	// take IDs, including IDs of locations that are not in the configuration. Errors are as those of Plan.
	Locate(ctx context.Context, name string) (id string, err error)
	// Plan observes everything that an owner has at a location, and plans the steps to the desired state. Errors wrap
	// [loadbalancer.ErrBusy], [loadbalancer.ErrRefused] or [loadbalancer.ErrUnknown]. An incomplete observation is an
	// error.
	Plan(ctx context.Context, location string, request PlanRequest) (loadbalancer.Plan, error)
	// Run runs a step of a plan that this balancer returned, and waits until it is done or ctx ends. Errors are as
	// those of Plan.
	Run(ctx context.Context, location string, step loadbalancer.Step) error
	// Owners returns the Services of the cluster that have objects at a location.
	Owners(ctx context.Context, location string) ([]loadbalancer.Owner, error)
	// NameOf returns the name of an owner's load balancer in logs.
	NameOf(owner loadbalancer.Owner) string
}

// A PlanRequest is a request for a plan.
type PlanRequest struct {
	Want service.Desired
	// Fresh requests an observation that is not older than the request.
	Fresh bool
	// Follow restricts the plan to steps that keep the members of an existing load balancer in sync with the nodes,
	// because everything else in the request was refused.
	Follow bool
	// Moved is the load balancer at its new location, in a request to remove the old one. The plan keeps objects that
	// the new load balancer still uses.
	Moved *Moved
}

// Moved is a load balancer at another location.
type Moved struct {
	Location  string // its ID
	Desired   service.Desired
	Addresses []netip.Addr
}
