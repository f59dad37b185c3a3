// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A ccm creates load balancers like this project's cloud controller manager of one cluster: it observes an edge
// gateway, creates a plan, and runs its steps.
type ccm struct {
	number  int
	rng     *rand.Rand
	config  vcd.Config
	pool    *vcd.Pool
	driver  *edge.Driver
	blocks  string // the URN of the gateway with a block of addresses
	spaces  string // the URN of the gateway with addresses of an IP Space
	cluster string
	// services counts the Services by gateway. The shared objects are removed with the last Service.
	services map[string]int
}

func newCCM(a assignment) (client, error) {
	return &ccm{
		number:   a.number,
		rng:      a.rng,
		config:   configOf(a, "ccm"),
		cluster:  fmt.Sprintf("ccm-%d", a.number),
		services: map[string]int{},
	}, nil
}

func (c *ccm) kinds() []kind {
	return []kind{
		{name: "service", create: func(t *object) error { return c.createService(t, c.blocks, c.subnet()) }},
		{name: "service of an IP Space", create: func(t *object) error { return c.createService(t, c.spaces, netip.Prefix{}) }},
	}
}

// subnet returns the client's part of the gateway's block of addresses.
func (c *ccm) subnet() netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("203.0.113.%d/29", 48+8*c.number))
}

// login creates a new pool, as a new process does, and looks up the gateways.
func (c *ccm) login() error {
	ctx := context.Background()
	c.pool = newPool()
	session, err := c.pool.Session(ctx, c.config)
	if err != nil {
		return err
	}
	c.driver = edge.New(func(ctx context.Context) (*vcd.Session, error) { return c.pool.Session(ctx, c.config) },
		edge.Options{MaxAge: time.Second})
	for name, id := range map[string]*string{"acme-vdc-gateway": &c.blocks, "acme-vdc-gateway-spaces": &c.spaces} {
		gateway, err := session.Gateways.FindGateway(ctx, name)
		if err != nil {
			return err
		}
		*id = gateway.ID
	}
	return nil
}

func (c *ccm) logout() error { return c.pool.Close(context.Background()) }

func (c *ccm) expected(err error) bool { return errors.Is(err, loadbalancer.ErrBusy) }

// createService creates the load balancer of a Service at a gateway.
func (c *ccm) createService(t *object, gateway string, subnet netip.Prefix) error {
	want := &lb.Desired{
		Desired: loadbalancer.Desired{
			Owner: loadbalancer.Owner{
				Cluster:   c.cluster,
				Namespace: "default",
				Name:      t.name,
				UID:       t.name,
			},
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		Subnet:  subnet,
		Members: []netip.Addr{netip.MustParseAddr("192.168.100.11"), netip.MustParseAddr("192.168.100.12")},
		Listeners: []lb.Listener{{
			Protocol:    loadbalancer.TCP,
			Application: lb.L4,
			Port:        443,
			NodePort:    30443,
		}},
	}
	c.services[gateway]++
	t.remove = func() error { return c.removeService(gateway, want) }
	if c.rng.IntN(2) == 0 {
		want.OneArm = c.oneArm()
	}
	t.changes = []change{
		{
			"change the nodes of",
			func() error {
				want.Members[0] = netip.MustParseAddr(fmt.Sprintf("192.168.100.%d", 20+c.rng.IntN(60)))
				return c.converge(gateway, want)
			},
		},
		{
			"change the port of",
			func() error {
				want.Listeners[0].Port = 443 + c.rng.IntN(10)
				return c.converge(gateway, want)
			},
		},
		{
			"change the protocol of",
			func() error {
				want.Listeners[0].Protocol = []loadbalancer.Protocol{loadbalancer.TCP, loadbalancer.UDP}[c.rng.IntN(2)]
				return c.converge(gateway, want)
			},
		},
		{
			"switch one-arm mode of",
			func() error {
				if want.OneArm == nil {
					want.OneArm = c.oneArm()
				} else {
					want.OneArm = nil
				}
				return c.converge(gateway, want)
			},
		},
	}
	return c.converge(gateway, want)
}

// removeService removes the load balancer of a Service and, after the last one, the shared objects.
func (c *ccm) removeService(gateway string, want *lb.Desired) error {
	want.Absent = true
	want.Accompanied = c.services[gateway] > 1
	if err := c.converge(gateway, want); err != nil {
		return err
	}
	if !want.Accompanied {
		whole := lb.Desired{
			Desired: loadbalancer.Desired{Owner: loadbalancer.Owner{Cluster: c.cluster}, Absent: true},
		}
		if err := c.converge(gateway, &whole); err != nil {
			return err
		}
	}
	c.services[gateway]--
	return nil
}

// oneArm returns the client's range of addresses behind DNAT rules.
func (c *ccm) oneArm() *lb.Range {
	return &lb.Range{
		First: netip.MustParseAddr(fmt.Sprintf("192.168.8.%d", 10+20*c.number)),
		Last:  netip.MustParseAddr(fmt.Sprintf("192.168.8.%d", 29+20*c.number)),
	}
}

// converge plans and runs steps until a gateway has the desired state. It retries immediately; the controller retries
// within seconds. A new plan avoids addresses that another client has taken in the meantime.
func (c *ccm) converge(gateway string, want *lb.Desired) error {
	var plan loadbalancer.Plan
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		plan, err = c.planAndRun(gateway, want)
		switch {
		case err != nil && !c.expected(err):
			return err
		case err != nil, plan.Wait != "":
			<-time.After(10 * time.Millisecond)
		case plan.Done():
			return nil
		case len(plan.Refusals) > 0:
			return fmt.Errorf("refused: %+v", plan.Refusals)
		}
	}
	return errors.Join(err, fmt.Errorf("the desired state was not reached within %s: %+v", timeout, plan))
}

// planAndRun creates a plan, stores its intended addresses, and runs its steps.
func (c *ccm) planAndRun(gateway string, want *lb.Desired) (loadbalancer.Plan, error) {
	ctx := context.Background()
	plan, err := c.driver.Plan(ctx, gateway, *want, edge.PlanOptions{NAT: true})
	if err != nil {
		return plan, err
	}
	want.Intent = intentAfter(want.Intent, plan)
	for _, step := range plan.Steps {
		if err := c.driver.Run(ctx, gateway, step); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// intentAfter returns the intended addresses to store for a plan.
func intentAfter(stored []netip.Addr, plan loadbalancer.Plan) []netip.Addr {
	if len(plan.Intent) > 0 {
		stored = plan.Intent
	}
	return slices.DeleteFunc(slices.Clone(stored), func(a netip.Addr) bool { return slices.Contains(plan.Unused, a) })
}
