// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"

	"github.com/vmware/cloud-provider-for-cloud-director/pkg/util"
	"github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
)

// A cpi creates load balancers like VMware's cloud provider.
type cpi struct{ vmwareClient }

func newCPI(a assignment) (client, error) { return &cpi{newVMwareClient(a)}, nil }

func (c *cpi) kinds() []kind {
	return []kind{
		{name: "service", create: func(t *object) error { return c.createService(t, "nodes") }},
		{name: "service of an IP Space", create: func(t *object) error { return c.createService(t, "nodes-2") }},
	}
}

// A service is a load balancer of VMware's cloud provider.
type service struct {
	gateway *vcdsdk.GatewayManager
	name    string
	oneArm  *vcdsdk.OneArm
	ports   []vcdsdk.PortDetails
	nodes   []string
}

// createService creates a load balancer for the nodes on a network.
func (c *cpi) createService(t *object, network string) error {
	gateway, err := vcdsdk.NewGatewayManager(context.Background(), c.client, network, c.subnet(network), "acme-vdc")
	if err != nil {
		return err
	}
	s := &service{
		gateway: gateway,
		name:    t.name,
		nodes:   []string{"192.168.100.11", "192.168.100.12"},
		ports: []vcdsdk.PortDetails{{
			Protocol:     "TCP",
			PortSuffix:   "tcp",
			ExternalPort: 443,
			InternalPort: 30443,
		}},
	}
	if c.rng.IntN(2) == 0 {
		s.oneArm = &vcdsdk.OneArm{
			StartIP: fmt.Sprintf("192.168.9.%d", 10+20*c.number),
			EndIP:   fmt.Sprintf("192.168.9.%d", 29+20*c.number),
		}
	}
	t.remove = s.remove
	t.changes = []change{
		{
			"change the nodes of",
			func() error {
				s.nodes[0] = fmt.Sprintf("192.168.100.%d", 20+c.rng.IntN(60))
				return s.update()
			},
		},
		{
			"change the port of",
			func() error {
				s.ports[0].ExternalPort = int32(443 + c.rng.IntN(10))
				return s.update()
			},
		},
	}
	return s.create()
}

// subnet returns the client's part of the block of addresses of a network's gateway.
func (c *cpi) subnet(network string) string {
	if network != "nodes" {
		return ""
	}
	return fmt.Sprintf("203.0.113.%d/29", 72+8*c.number)
}

func (s *service) create() error {
	_, err := s.gateway.CreateLoadBalancer(context.Background(), s.name, s.name+"-pool", s.name, s.nodes, s.ports, s.oneArm,
		true, nil, "", &util.AllocatedResourcesMap{})
	return err
}

// update changes the load balancer. If it was only created partially, update creates it.
func (s *service) update() error {
	address, err := s.address()
	if err != nil {
		return err
	}
	if address == "" {
		return s.create()
	}
	port := s.ports[0]
	_, err = s.gateway.UpdateLoadBalancer(context.Background(), s.pool(), s.virtualService(), s.nodes, address,
		port.InternalPort, port.ExternalPort, s.oneArm, true, port.Protocol, &util.AllocatedResourcesMap{})
	return err
}

// address returns the address of the virtual service, or an empty string if it does not exist.
func (s *service) address() (string, error) {
	address, _, err := s.gateway.GetLoadBalancer(context.Background(), s.virtualService(), s.pool(), s.oneArm)
	return address, err
}

func (s *service) virtualService() string { return s.name + "-" + s.ports[0].PortSuffix }

func (s *service) pool() string { return s.name + "-pool-" + s.ports[0].PortSuffix }

// remove deletes the load balancer. VMware's client refuses to release an address of an IP Space without a virtual
// service, so remove first completes a partially created load balancer.
func (s *service) remove() error {
	address, err := s.address()
	if err != nil {
		return err
	}
	if address == "" {
		if err := s.create(); err != nil {
			return err
		}
	}
	_, err = s.gateway.DeleteLoadBalancer(context.Background(), s.name, s.name+"-pool", s.name, s.ports, s.oneArm,
		&util.AllocatedResourcesMap{})
	return err
}
