package cpi

import (
	"context"

	cloudprovider "k8s.io/cloud-provider"
)

// A Backend is one cloud, ready to be used. Only Name, Machines and Explain are required.
type Backend struct {
	// Name of the cloud provider, and the scheme of its provider IDs.
	Name     string
	Machines Machines
	// Balancer makes load balancers; nil: Services are left alone.
	Balancer Balancer
	// Routes of the network of pods; nil: the cloud has none.
	Routes cloudprovider.Routes
	// Explain returns what an error of the cloud means to users; false if the cloud can still be used.
	Explain func(error) (Trouble, bool)
	// Parts are started with the provider.
	Parts []Starter
	// Close ends sessions at the end of the process; nil: there are none.
	Close func(context.Context) error
}
