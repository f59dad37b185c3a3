// SPDX-License-Identifier: Apache-2.0

// Package tiny is a cloud of two maps, with a backend: machines and load balancers. It shows what a cloud has to bring
// at least, and holds the core to knowing no other cloud.
package tiny

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Name of the provider.
const Name = "tiny"

// ErrAway is the error of every call during an outage.
var ErrAway = errors.New("the tiny cloud does not answer")

// firstAddress is that of the first load balancer.
var firstAddress = netip.MustParseAddr("198.51.100.1")

// A Cloud has machines by name and load balancers by the UID of their owner.
type Cloud struct {
	mu        sync.Mutex
	away      bool
	writes    int
	machines  map[string]cpi.Machine
	balancers map[string]*balancer
}

type balancer struct {
	owner   loadbalancer.Owner
	address netip.Addr
	ports   map[int]string // addresses that a port sends to
}

// New returns a cloud with nothing in it.
func New() *Cloud {
	return &Cloud{machines: map[string]cpi.Machine{}, balancers: map[string]*balancer{}}
}

// Backend returns the backend of the cloud for a cluster.
func (c *Cloud) Backend(cluster string) cpi.Backend {
	return cpi.Backend{
		Name:     Name,
		Machines: (*machines)(c),
		Balancer: &balancers{cloud: c, cluster: cluster},
		Services: service.Defaults{
			Cluster:      cluster,
			Dialect:      servicetest.Dialect{Noun: "location"},
			SourceRanges: true,
			Locations:    []string{""},
		},
		Explain: func(err error) (cpi.Trouble, bool) {
			return cpi.Trouble{Reason: "TinyCloudAway", Message: err.Error()}, errors.Is(err, ErrAway)
		},
	}
}

// Put adds or changes a machine.
func (c *Cloud) Put(name string, address netip.Addr, power cpi.Power) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[name] = cpi.Machine{
		ProviderID: Name + "://" + name,
		Name:       name,
		Power:      power,
		Complete:   true,
		NICs:       []cpi.NIC{{Primary: true, Addresses: []netip.Addr{address}}},
	}
}

// Remove removes a machine.
func (c *Cloud) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.machines, name)
}

// SetAway begins or ends an outage.
func (c *Cloud) SetAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// Break removes the ports of all load balancers.
func (c *Cloud) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.balancers {
		clear(b.ports)
	}
}

// Standing returns the machines that each address and port sends to.
func (c *Cloud) Standing() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ports := map[string]string{}
	for _, b := range c.balancers {
		for port, members := range b.ports {
			ports[fmt.Sprintf("%s:%d", b.address, port)] = members
		}
	}
	return ports
}

// Writes returns the number of steps that were run.
func (c *Cloud) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// Left returns the number of load balancers.
func (c *Cloud) Left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.balancers)
}

// lock begins a call.
func (c *Cloud) lock() (unlock func(), err error) {
	c.mu.Lock()
	if c.away {
		c.mu.Unlock()
		return nil, ErrAway
	}
	return c.mu.Unlock, nil
}

type machines Cloud

// Snapshot implements [cpi.Machines].
func (m *machines) Snapshot(context.Context, time.Duration) ([]cpi.Machine, error) {
	unlock, err := (*Cloud)(m).lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return slices.Collect(maps.Values(m.machines)), nil
}

// Get implements [cpi.Machines].
func (m *machines) Get(_ context.Context, providerID string) (cpi.Machine, error) {
	unlock, err := (*Cloud)(m).lock()
	if err != nil {
		return cpi.Machine{}, err
	}
	defer unlock()
	machine, ok := m.machines[strings.TrimPrefix(providerID, Name+"://")]
	if !ok {
		return machine, &cpi.AbsenceError{Evidence: gone.Evidence{
			ScopeShown: true,
			HomeShown:  true,
			Logged:     true,
			Deleted:    true,
		}}
	}
	return machine, nil
}

// balancers are the load balancers of the cloud, as one cluster makes them.
type balancers struct {
	cloud   *Cloud
	cluster string
}

// Locate implements [cpi.Balancer]: there is one location.
func (b *balancers) Locate(context.Context, string) (string, error) { return "everywhere", nil }

// NameOf implements [cpi.Balancer].
func (b *balancers) NameOf(o loadbalancer.Owner) string { return o.String() }

// Owners implements [cpi.Balancer].
func (b *balancers) Owners(context.Context, string) ([]loadbalancer.Owner, error) {
	unlock, err := b.cloud.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []loadbalancer.Owner
	for _, lb := range b.cloud.balancers {
		if lb.owner.Cluster == b.cluster {
			out = append(out, lb.owner)
		}
	}
	return out, nil
}

// A step changes one load balancer.
type step struct {
	text string
	uses []loadbalancer.Use
	run  func(*balancers)
}

// String implements [loadbalancer.Step].
func (s step) String() string { return s.text }

// Uses implements [loadbalancer.Step].
func (s step) Uses() []loadbalancer.Use { return s.uses }

// Deferrable implements [loadbalancer.Step].
func (s step) Deferrable() bool { return false }

// Run implements [cpi.Balancer].
func (b *balancers) Run(_ context.Context, _ string, s loadbalancer.Step) error {
	unlock, err := b.cloud.lock()
	if err != nil {
		return err
	}
	defer unlock()
	own, ok := s.(step)
	if !ok {
		return loadbalancer.ErrRefused
	}
	own.run(b)
	b.cloud.writes++
	return nil
}

// Plan implements [cpi.Balancer].
func (b *balancers) Plan(_ context.Context, _ string, request cpi.PlanRequest) (loadbalancer.Plan, error) {
	unlock, err := b.cloud.lock()
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	defer unlock()
	want := request.Want
	have := b.cloud.balancers[request.Want.Owner.UID]
	switch {
	case want.Absent && have == nil:
		return loadbalancer.Plan{}, nil
	case want.Absent:
		remove := func(b *balancers) { delete(b.cloud.balancers, want.Owner.UID) }
		return loadbalancer.Plan{
			Steps: []loadbalancer.Step{step{text: "remove " + want.Owner.String(), run: remove}},
			Status: loadbalancer.Status{Objects: []loadbalancer.Object{{
				Name:      want.Owner.String(),
				Addresses: []netip.Addr{have.address},
			}}},
		}, nil
	case len(want.SourceRanges) > 0:
		return loadbalancer.Plan{Refusals: []loadbalancer.Finding{{
			Reason:  "Unsupported",
			Message: "the tiny cloud has no source ranges",
		}}}, nil
	case have == nil:
		return b.create(want), nil
	}
	return change(want, have), nil
}

func (b *balancers) create(want service.Desired) loadbalancer.Plan {
	address := firstAddress
	if len(want.Intent) > 0 {
		address = want.Intent[0]
	} else if len(want.Requested) > 0 {
		address = want.Requested[0]
	}
	for b.taken(address, want.Reserved) {
		address = address.Next()
	}
	create := func(b *balancers) {
		b.cloud.balancers[want.Owner.UID] = &balancer{owner: want.Owner, address: address, ports: map[int]string{}}
	}
	p := loadbalancer.Plan{Steps: []loadbalancer.Step{step{
		"create " + want.Owner.String(),
		[]loadbalancer.Use{{Address: address, Owner: want.Owner}},
		create,
	}}}
	if !slices.Equal(want.Intent, []netip.Addr{address}) {
		p.Intent = []netip.Addr{address}
	}
	return p
}

func (b *balancers) taken(a netip.Addr, reserved []loadbalancer.Use) bool {
	for _, other := range b.cloud.balancers {
		if other.address == a {
			return true
		}
	}
	return slices.ContainsFunc(reserved, func(u loadbalancer.Use) bool { return u.Address == a })
}

// change plans the ports of a load balancer that stands.
func change(want service.Desired, have *balancer) loadbalancer.Plan {
	p := loadbalancer.Plan{Status: loadbalancer.Status{
		Addresses: []netip.Addr{have.address},
		Objects:   []loadbalancer.Object{{Name: want.Owner.String(), Addresses: []netip.Addr{have.address}}},
	}}
	wanted := map[int]string{}
	for _, port := range want.Ports {
		var members []string
		for _, m := range want.Members {
			members = append(members, m.Addresses[0].String())
		}
		wanted[port.Number] = strings.Join(members, " ")
		p.Status.Ports = append(p.Status.Ports, loadbalancer.PortStatus{Protocol: port.Protocol, Port: port.Number})
	}
	for _, port := range slices.Sorted(maps.Keys(wanted)) {
		if members := wanted[port]; have.ports[port] != members {
			p.Steps = append(p.Steps,
				step{
					text: fmt.Sprintf("serve port %d by %s", port, members),
					run:  func(*balancers) { have.ports[port] = members },
				})
		}
	}
	for _, port := range slices.Sorted(maps.Keys(have.ports)) {
		if _, ok := wanted[port]; !ok {
			p.Steps = append(p.Steps,
				step{text: fmt.Sprintf("close port %d", port), run: func(*balancers) { delete(have.ports, port) }})
		}
	}
	return p
}
