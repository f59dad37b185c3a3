// Package cpi is the core of the cloud controller manager: what k8s.io/cloud-provider's controllers ask of a cloud, answered
// from a [Machines] and a load balancer of a backend. It knows Kubernetes and no cloud: backends are in folders of their own.
package cpi

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
)

// Options are what the provider is made of.
type Options struct {
	// Name is the name of the provider, and the scheme of its provider IDs.
	Name string
	// Instances answer for Nodes.
	Instances cloudprovider.InstancesV2
	// LoadBalancer answers for Services of type LoadBalancer; nil leaves them alone.
	LoadBalancer cloudprovider.LoadBalancer
	// Parts are started with the provider. Instances and LoadBalancer are, too, if they are Starters.
	Parts []Starter
}

// A Starter is a part of the provider that has work of its own to do. It is started once this process leads, before
// informers run, and stops when ctx ends.
type Starter interface{ Start(ctx context.Context) }

// A Cloud is the provider as the controllers of k8s.io/cloud-provider see it.
type Cloud struct{ opts Options }

var _ cloudprovider.Interface = (*Cloud)(nil)

// New returns the provider.
func New(opts Options) *Cloud { return &Cloud{opts} }

// Initialize starts what the parts of the provider do by themselves, until stop is closed.
func (c *Cloud) Initialize(_ cloudprovider.ControllerClientBuilder, stop <-chan struct{}) {
	ctx := wait.ContextForChannel(stop)
	for _, part := range []any{c.opts.Instances, c.opts.LoadBalancer} {
		if starter, ok := part.(Starter); ok {
			starter.Start(ctx)
		}
	}
	for _, part := range c.opts.Parts {
		part.Start(ctx)
	}
}

// LoadBalancer returns what answers for Services, if the provider does so.
func (c *Cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) {
	return c.opts.LoadBalancer, c.opts.LoadBalancer != nil
}

// Instances is not supported: InstancesV2 is.
func (c *Cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

// InstancesV2 returns what answers for Nodes.
func (c *Cloud) InstancesV2() (cloudprovider.InstancesV2, bool) {
	return c.opts.Instances, c.opts.Instances != nil
}

// Zones is not supported: InstancesV2 tells zones.
func (c *Cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters is not supported.
func (c *Cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes is not supported: the network of pods is not the cloud's.
func (c *Cloud) Routes() (cloudprovider.Routes, bool) { return nil, false }

// ProviderName returns the name of the provider.
func (c *Cloud) ProviderName() string { return c.opts.Name }

// HasClusterID says that clusters are told apart: Nodes and load balancers are matched by the cluster's own id.
func (c *Cloud) HasClusterID() bool { return true }
