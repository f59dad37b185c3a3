// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

const (
	// cloudStackName is the name of the cluster on CloudStack.
	cloudStackName = "cloudstack"
	// cloudStackVMs is the number of its nodes.
	cloudStackVMs = 3
	// cloudStackNamespace is the namespace of its Services.
	cloudStackNamespace = "soak-cloudstack"
)

// A cloudStack is a simulated Apache CloudStack with the nodes of one cluster, and its cloud controller manager. Services
// come and go, and the cloud has outages. Cluster API does not manage the cluster.
type cloudStack struct {
	world      *world
	controller *ccm
	simulator  *cloudstacksim.Simulator
	api        *httptest.Server
}

// newCloudStack starts the simulator and prepares the cloud controller manager.
func (w *world) newCloudStack() (*cloudStack, error) {
	simulator := cloudstacksim.New(cloudstacksim.Options{})
	network := simulator.AddNetwork("nodes", "")
	for i := range cloudStackVMs {
		simulator.AddVM(fmt.Sprintf("cs-%d", i), []string{network}, []string{fmt.Sprintf("10.40.1.%d", 1+i)})
	}
	for i := range 20 {
		simulator.AddAddresses(fmt.Sprintf("203.0.113.%d", i+1))
	}
	c := &cloudStack{world: w, simulator: simulator, api: httptest.NewServer(simulator)}
	config := filepath.Join(w.dir, "ccm", cloudStackName, "cloud-config")
	var err error
	c.controller, err = w.newCCM(cloudStackName, "--cloud-provider=external-cloudstack", "--cloud-config="+config)
	if err != nil {
		return nil, err
	}
	return c, c.controller.write(map[string][]byte{"cloud-config": fmt.Appendf(nil, `[Global]
api-url = %s/client/api
api-key = %s
secret-key = %s
cluster-id = %s
[LoadBalancer]
drift-interval = 1m
`, c.api.URL, cloudstacksim.UserKey, cloudstacksim.UserSecret, cloudStackName)})
}

// live keeps the cloud controller manager running until ctx ends, as a kubelet does.
func (c *cloudStack) live(ctx context.Context) error {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			err := c.controller.end()
			c.api.Close()
			return err
		case <-ticker.C:
		}
		if !c.controller.paused.TryLock() {
			continue // It was killed.
		}
		err := c.controller.start()
		c.controller.paused.Unlock()
		if err != nil {
			return err
		}
		if err := c.controller.mirrorNodes(ctx, c.nodes()); err != nil {
			c.world.logf("%s: the work of its kubelets: %s", cloudStackName, err)
		}
	}
}

// nodes returns the nodes of its VMs.
func (c *cloudStack) nodes() []corev1.Node {
	var out []corev1.Node
	for _, vm := range c.simulator.Objects(cloudstacksim.VMs) {
		out = append(out, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(vm["name"])},
			Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("external-cloudstack://%v", vm["id"])},
		})
	}
	return out
}

// act executes an event of the plan.
func (c *cloudStack) act(ctx context.Context, e event) error {
	switch e.Action { //nolint:exhaustive // the others are for sites
	case actService:
		return c.world.createService(ctx, cloudStackNamespace, cloudStackName, e.Number)
	case actNoService:
		return c.world.deleteService(ctx, cloudStackNamespace, cloudStackName, e.Number)
	case actFault:
		c.disturb(ctx, e)
	}
	return nil
}

// disturb makes the cloud fail for a while, in one of three ways.
func (c *cloudStack) disturb(ctx context.Context, e event) {
	switch e.Number % 3 {
	case 0:
		c.simulator.SetAway(true)
	case 1:
		c.simulator.Fail(cloudstacksim.Fault{Times: 10})
	default:
		c.simulator.Fail(cloudstacksim.Fault{Times: 5, Done: true})
	}
	c.world.wait(ctx, e.For)
	c.calm()
}

// calm ends all disturbances.
func (c *cloudStack) calm() {
	c.simulator.SetAway(false)
	c.simulator.Heal()
}

// unsettled returns the reason why its Services are not as required, or nothing.
func (c *cloudStack) unsettled(services []corev1.Service) string {
	rules := 0
	for i := range services {
		s := &services[i]
		if s.Labels[clusterLabel] != cloudStackName {
			continue
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("Service %s has no address", s.Name)
		}
		rules += len(s.Spec.Ports)
	}
	existing := c.simulator.Objects(cloudstacksim.Rules)
	if len(existing) != rules {
		return fmt.Sprintf("has %d load balancer rules for %d ports of Services", len(existing), rules)
	}
	for _, rule := range existing {
		if members := c.simulator.Members(fmt.Sprint(rule["id"])); len(members) != cloudStackVMs {
			return fmt.Sprintf("rule %v has members %v, not %d", rule["name"], members, cloudStackVMs)
		}
	}
	return ""
}

// left returns the remaining objects of load balancers.
func (c *cloudStack) left() []string {
	var out []string
	for _, kind := range []string{cloudstacksim.Addresses, cloudstacksim.Rules, cloudstacksim.Firewalls} {
		for _, o := range c.simulator.Objects(kind) {
			if o["state"] != "Free" {
				out = append(out, fmt.Sprintf("%s %v", kind, o["id"]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// empty deletes all Services of the cluster and reports what is left of them.
func (c *cloudStack) empty(ctx context.Context) error {
	for number := range maxServices {
		if err := c.world.deleteService(ctx, cloudStackNamespace, cloudStackName, number); err != nil {
			return err
		}
	}
	for began := time.Now(); ; {
		left := c.left()
		if len(left) == 0 {
			return nil
		}
		if time.Since(began) > c.world.bound {
			for _, text := range left {
				c.world.judge.report(violation{At: c.world.now(), Cluster: cloudStackName, Text: "left: " + text})
			}
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
