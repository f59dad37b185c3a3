// SPDX-License-Identifier: Apache-2.0

// Package cpi is the core of the cloud controller manager. It implements the interfaces of k8s.io/cloud-provider on top
// of a [Backend]. It has no code for a specific cloud: each backend is in its own folder.
package cpi

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/utils/clock"
)

// Settings are the settings that all clouds have in common.
type Settings struct {
	Addresses AddressPolicy
	MaxAge    time.Duration // [InstanceOptions.MaxAge]
	Drift     time.Duration // [LoadBalancerOptions.Drift]
	// Class is the load balancer class of the Services to manage. ClassOnly means that Services without a class are not
	// managed ([classTransform]).
	Class     string
	ClassOnly bool
}

// Options configure a [Cloud].
type Options struct {
	Backend
	Settings

	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Recorder  record.EventRecorder
	// Namespace of the ConfigMap [RecordsName]; empty means kube-system.
	Namespace string
	// Manifest is [LoadBalancerOptions.Manifest].
	Manifest string
	// Self is the object of events about the provider itself.
	Self    *corev1.ObjectReference
	Metrics prometheus.Registerer
	Clock   clock.WithTicker // nil: real time
}

// A Starter runs in the background. It is started once this process is the leader, before the informers run, and stops
// when ctx ends.
type Starter interface{ Start(ctx context.Context) }

// A Cloud is the provider, as an implementation of the interface of k8s.io/cloud-provider.
type Cloud struct {
	opts      Options
	instances *Instances
	balancers *LoadBalancers // nil: none
	starters  []Starter
}

var _ cloudprovider.Interface = (*Cloud)(nil)

// New returns the provider of a backend. The informers must not have been started.
func New(o Options) (*Cloud, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Services.Class = o.Class
	nodes := o.Informers.Core().V1().Nodes()
	services := o.Informers.Core().V1().Services()
	if err := services.Informer().SetTransform(classTransform(o.Class, o.ClassOnly)); err != nil {
		return nil, fmt.Errorf("choosing Services by their class: %w", err)
	}
	if err := nodes.Informer().SetTransform(slimNode); err != nil {
		return nil, fmt.Errorf("choosing what is cached of Nodes: %w", err)
	}
	outages := NewOutages(OutageOptions{
		Explain:  o.Explain,
		Recorder: o.Recorder,
		Self:     o.Self,
		Services: services.Lister(),
		Defaults: o.Services,
		Clock:    o.Clock,
	})
	o.Machines = outages.Machines(o.Machines)
	c := &Cloud{opts: o, starters: append(o.Parts, outages)}
	c.instances = NewInstances(InstanceOptions{
		Name:      o.Name,
		Canonical: o.Canonical,
		Machines:  o.Machines,
		Addresses: o.Addresses,
		MaxAge:    o.MaxAge,
		Nodes:     nodes.Lister(),
		Recorder:  o.Recorder,
		Clock:     o.Clock,
	})
	if o.Balancer == nil {
		c.starters = append(c.starters, newWithdrawals(o, nil))
		return c, nil
	}
	balancer := outages.Balancer(o.Balancer)
	c.balancers = NewLoadBalancers(LoadBalancerOptions{
		Balancer:     balancer,
		Searcher:     balancer.searcher(),
		Defaults:     o.Services,
		Client:       o.Client,
		Namespace:    o.Namespace,
		Recorder:     o.Recorder,
		Manifest:     o.Manifest,
		Self:         o.Self,
		Drift:        o.Drift,
		Services:     services.Lister(),
		Nodes:        nodes.Lister(),
		NodeInformer: nodes.Informer(),
		Clock:        o.Clock,
		Synced:       []cache.InformerSynced{services.Informer().HasSynced, nodes.Informer().HasSynced},
	})
	c.starters = append(c.starters, c.balancers, newWithdrawals(o, c.balancers))
	for _, collector := range []prometheus.Collector{balancer, c.balancers.Collector()} {
		if err := o.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return c, nil
}

// Initialize starts the background work. It runs until stop is closed.
func (c *Cloud) Initialize(_ cloudprovider.ControllerClientBuilder, stop <-chan struct{}) {
	ctx := wait.ContextForChannel(stop)
	for _, s := range c.starters {
		s.Start(ctx)
	}
}

// LoadBalancer returns the load balancers of Services, if the backend has any.
func (c *Cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) {
	return c.balancers, c.balancers != nil
}

// Instances is not supported: the controllers use InstancesV2.
func (c *Cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

// InstancesV2 returns the implementation for Nodes.
func (c *Cloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c.instances, true }

// Zones is not supported: InstancesV2 returns zones.
func (c *Cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters is not supported.
func (c *Cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes returns the routes of the pod network, if the backend has any.
func (c *Cloud) Routes() (cloudprovider.Routes, bool) { return c.opts.Routes, c.opts.Routes != nil }

// ProviderName returns the name of the provider.
func (c *Cloud) ProviderName() string { return c.opts.Name }

// HasClusterID returns true: Nodes and load balancers are matched by the ID of the cluster.
func (c *Cloud) HasClusterID() bool { return true }

// Rights returns an error if the process lacks permissions. Only the leader tries a write to find out.
func (c *Cloud) Rights(ctx context.Context, leads bool) error {
	switch {
	case c.balancers == nil:
		return nil
	case leads:
		return c.balancers.store.load(ctx)
	}
	return c.balancers.store.readable(ctx)
}

// Machines returns the machines of the cluster. Failures of the cloud are reported as outages.
func (c *Cloud) Machines() Machines { return c.opts.Machines }
