// SPDX-License-Identifier: Apache-2.0

package cpitest

import (
	"maps"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/api"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

func (c *cluster) nodesAreKnown() {
	name := c.machines()[0]

	node := c.node(name) // by its name, as it has no provider ID
	c.Expect(node.Spec.ProviderID).To(HavePrefix(c.provider.ProviderName() + "://"))
	metadata, err := c.instances().InstanceMetadata(c.t.Context(), node)

	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(metadata.ProviderID).To(Equal(node.Spec.ProviderID))
	c.Expect(metadata.NodeAddresses).To(ContainElements(
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: c.cloud.Machines[name]},
		corev1.NodeAddress{Type: corev1.NodeHostName, Address: name}))
	c.Expect(c.instances().InstanceExists(c.t.Context(), node)).To(BeTrue())
	c.Expect(c.instances().InstanceShutdown(c.t.Context(), node)).To(BeFalse())
}

func (c *cluster) foreignNodesAreLeftAlone() {
	foreign := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign"},
		Spec:       corev1.NodeSpec{ProviderID: "another://machine"},
	}

	c.Expect(c.instances().InstanceExists(c.t.Context(), foreign)).To(BeTrue())
	c.Expect(c.instances().InstanceShutdown(c.t.Context(), foreign)).To(BeFalse())
	c.Expect(c.instances().InstanceMetadata(c.t.Context(), foreign)).To(BeNil())
}

func (c *cluster) shutdownIsNotGone() {
	node := c.node(c.machines()[0])

	c.cloud.PowerOff(node.Name)
	c.clock.Step(time.Minute)

	c.Expect(c.instances().InstanceShutdown(c.t.Context(), node)).To(BeTrue())
	c.Expect(c.instances().InstanceExists(c.t.Context(), node)).To(BeTrue())
}

func (c *cluster) goneIsProvedTwice() {
	for _, name := range c.machines() {
		c.node(name)
	}
	node := c.node(c.machines()[0])
	c.cloud.Remove(node.Name)
	c.clock.Step(time.Minute)

	_, err := c.instances().InstanceExists(c.t.Context(), node)
	c.Expect(err).To(HaveOccurred(), "it may only be missing")
	c.clock.Step(2 * time.Minute)

	c.Expect(c.instances().InstanceExists(c.t.Context(), node)).To(BeFalse())
	c.Expect(c.instances().InstanceExists(c.t.Context(), c.node(c.machines()[1]))).To(BeTrue())
}

func (c *cluster) outageRemovesNothing() {
	node := c.node(c.machines()[0])
	var s *corev1.Service
	if c.cloud.Balancers != nil {
		s = c.service("shop")
		c.ensured(s)
	}
	c.cloud.SetAway(true)

	for range 5 {
		c.clock.Step(5 * time.Minute)
		_, err := c.instances().InstanceExists(c.t.Context(), node)
		c.Expect(err).To(HaveOccurred(), "what is not seen may exist")
	}
	if s != nil {
		_, exists, err := c.balancer().GetLoadBalancer(c.t.Context(), "", s)
		c.Expect(exists || err != nil).To(BeTrue(), "what is not seen may exist")
		c.Expect(c.balancer().EnsureLoadBalancerDeleted(c.t.Context(), "", s)).NotTo(Succeed())
	}

	c.cloud.SetAway(false)
	c.clock.Step(5 * time.Minute)
	c.Eventually(func() (bool, error) { return c.instances().InstanceExists(c.t.Context(), node) }, "30s",
		"5ms").Should(BeTrue())
	if s != nil {
		c.removed(s)
		c.Expect(c.cloud.Balancers.Left()).To(BeZero())
	}
}

func (c *cluster) lifeOfALoadBalancer() {
	c.balancer()
	s := c.service("shop")

	address := c.ensured(s)
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(map[string]string{address + ":80": c.membersExcept()}))
	writes := c.cloud.Balancers.Writes()
	c.Expect(c.ensured(s)).To(Equal(address))
	c.Expect(c.cloud.Balancers.Writes()).To(Equal(writes), "the second time changes nothing")
	_, exists, err := c.balancer().GetLoadBalancer(c.t.Context(), "", s)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(exists).To(BeTrue())

	now := c.stored(s)
	now.Spec.Ports[0].Port = 8080
	now.Spec.Ports = append(now.Spec.Ports,
		corev1.ServicePort{Name: "more", Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30443})
	c.update(now)
	c.Expect(c.ensured(s)).To(Equal(address), "clients keep the address")
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(map[string]string{
		address + ":8080": c.membersExcept(),
		address + ":443":  c.membersExcept(),
	}))

	c.removed(s)
	c.Expect(c.cloud.Balancers.Left()).To(BeZero())
	c.Expect(c.events.Events).To(BeEmpty())
}

func (c *cluster) sameNameTwice() {
	c.balancer()
	one := c.service("shop")
	two := c.service("blog")

	first := c.ensured(one)
	second := c.ensured(two)
	c.Expect(first).NotTo(Equal(second))

	c.removed(one)
	c.Expect(c.ensured(two)).To(Equal(second))
	c.Expect(c.cloud.Balancers.Standing()).To(HaveLen(1))
	c.removed(two)
	c.Expect(c.cloud.Balancers.Left()).To(BeZero())
}

func (c *cluster) membersFollowNodes() {
	c.balancer()
	s := c.service("shop")
	leaver := c.machines()[0]
	address := c.ensured(s)

	c.Expect(c.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", leaver)).To(Succeed())
	c.waitForInformers()
	c.Expect(c.balancer().UpdateLoadBalancer(c.t.Context(), "", c.stored(s), nil)).To(Succeed())
	c.Expect(c.ensured(s)).To(Equal(address))
	c.Expect(c.cloud.Balancers.Standing()).To(HaveKeyWithValue(address+":80", c.membersExcept(leaver)))

	c.addNode(leaver)
	c.waitForInformers()
	c.Expect(c.balancer().UpdateLoadBalancer(c.t.Context(), "", c.stored(s), nil)).To(Succeed())
	c.Expect(c.ensured(s)).To(Equal(address))
	c.Expect(c.cloud.Balancers.Standing()).To(HaveKeyWithValue(address+":80", c.membersExcept()))
	c.removed(s)
}

func (c *cluster) driftIsRepaired() {
	c.balancer()
	s := c.service("shop")
	address := c.ensured(s)
	c.provider.Initialize(nil, c.t.Context().Done())

	c.cloud.Balancers.Break()
	c.Expect(c.cloud.Balancers.Standing()).NotTo(HaveKeyWithValue(address+":80", c.membersExcept()))

	c.Eventually(func() map[string]string {
		c.clock.Step(2 * time.Minute)
		return c.cloud.Balancers.Standing()
	}, "30s", "20ms").Should(Equal(map[string]string{address + ":80": c.membersExcept()}))
	c.removed(s)
}

// withdrawalIsConfirmed withdraws a Node from a load balancer, and then deletes it. That is one update.
func (c *cluster) withdrawalIsConfirmed() {
	c.balancer()
	s := c.service("shop")
	leaver := c.machines()[0]
	address := c.ensured(s)
	standing := map[string]string{address + ":80": c.membersExcept(leaver)}
	writes := c.cloud.Balancers.Writes()

	c.withdraw(leaver)
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(standing))
	c.Expect(c.cloud.Balancers.Writes()).To(Equal(writes + 1))

	c.Expect(c.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", leaver)).To(Succeed())
	c.waitForInformers()
	c.Expect(c.balancer().UpdateLoadBalancer(c.t.Context(), "", c.stored(s), nil)).To(Succeed())
	c.Expect(c.ensured(s)).To(Equal(address))
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(standing))
	c.Expect(c.cloud.Balancers.Writes()).To(Equal(writes + 1))
	c.removed(s)
}

// withdrawalWithoutServices withdraws a Node while there are no load balancers.
func (c *cluster) withdrawalWithoutServices() { c.withdraw(c.machines()[0]) }

// withdraw requests the withdrawal of a Node, and waits until it is confirmed.
func (c *cluster) withdraw(name string) {
	c.provider.Initialize(nil, c.t.Context().Done())
	node := c.now(name)
	withdrawal.Request(node, c.clock.Now())
	_, err := c.client.CoreV1().Nodes().Update(c.t.Context(), node, metav1.UpdateOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	c.Eventually(func() bool {
		c.clock.Step(100 * time.Millisecond)
		return withdrawal.IsConfirmed(c.now(name))
	}, timeout, pollInterval).Should(BeTrue())
}

func (c *cluster) refusalHeals() {
	c.balancer()
	s := c.service("shop", c.cloud.Balancers.Refused)

	for range 2 {
		_, err := c.balancer().EnsureLoadBalancer(c.t.Context(), "", c.stored(s), nil)
		c.Expect(err).To(BeAssignableToTypeOf(&api.RetryError{}))
	}
	c.Expect(c.events.Events).To(Receive(HavePrefix(corev1.EventTypeWarning)))
	c.Expect(c.events.Events).To(BeEmpty(), "once")
	c.Expect(c.cloud.Balancers.Left()).To(BeZero(), "nothing half-built")

	now := c.stored(s)
	right := template(s.Namespace)
	now.Spec = right.Spec
	now.Annotations = right.Annotations
	c.update(now)
	c.ensured(s)
	c.Expect(c.events.Events).To(Receive(HavePrefix(corev1.EventTypeNormal + " LoadBalancerRecovered")))
	c.removed(s)
	c.Expect(c.cloud.Balancers.Left()).To(BeZero())
}

// crashesLoseNothing kills the process at each step of a creation and a removal. A new process continues each time.
func (c *cluster) crashesLoseNothing() {
	c.balancer()
	c.crashAtEachStep()
}

// crashAtEachStep repeats the life of a Service. Each time, the process dies one step later. Load balancers that exist
// at the start are not affected.
func (c *cluster) crashAtEachStep() {
	standing := c.cloud.Balancers.Standing()
	left := c.cloud.Balancers.Left()
	for _, after := range []bool{false, true} {
		for step := 1; ; step++ {
			s := c.service("shop")
			died := c.diesAt(step, after, func() error {
				_, err := c.balancer().EnsureLoadBalancer(c.t.Context(), "", c.stored(s), nil)
				return err
			})
			c.start(nil)
			address := c.ensured(s)
			now := maps.Clone(standing)
			now[address+":80"] = c.membersExcept()
			c.Expect(c.cloud.Balancers.Standing()).To(Equal(now), "step %d", step)
			diedAgain := c.diesAt(step, after,
				func() error { return c.balancer().EnsureLoadBalancerDeleted(c.t.Context(), "", c.stored(s)) })
			c.start(nil)
			c.removed(s)
			c.Expect(c.cloud.Balancers.Left()).To(Equal(left), "step %d", step)
			if !died && !diedAgain {
				break
			}
		}
	}
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(standing))
}

// clustersShareALocation creates a load balancer for each of two clusters at one location. Neither cluster may report
// the other's load balancer as orphaned.
func (c *cluster) clustersShareALocation() {
	c.balancer()
	neighbor := newCluster(c.t, "c2", c.cloud, c.clock)
	mine := c.service("shop")
	theirs := neighbor.service("blog")

	first := c.ensured(mine)
	second := neighbor.ensured(theirs)

	c.Expect(c.cloud.Balancers.Standing()).To(Equal(
		map[string]string{first + ":80": c.membersExcept(), second + ":80": c.membersExcept()}))
	c.Expect(c.owners()).To(Equal([]loadbalancer.Owner{{Cluster: "c1", Namespace: "shop", Name: "web", UID: "uid-shop"}}))
	c.Expect(neighbor.owners()).To(Equal([]loadbalancer.Owner{{Cluster: "c2", Namespace: "blog", Name: "web", UID: "uid-blog"}}))
	c.removed(mine)
	c.Expect(c.owners()).To(BeEmpty())
	c.Expect(c.cloud.Balancers.Standing()).To(Equal(map[string]string{second + ":80": c.membersExcept()}))
	neighbor.removed(theirs)
	c.Expect(c.cloud.Balancers.Left()).To(BeZero())
}

// crashesHarmNoOtherCluster kills the process at each step while another cluster has a load balancer at the location.
func (c *cluster) crashesHarmNoOtherCluster() {
	c.balancer()
	neighbor := newCluster(c.t, "c2", c.cloud, c.clock)
	theirs := neighbor.service("blog")
	neighbor.ensured(theirs)

	c.crashAtEachStep()

	c.Expect(c.owners()).To(BeEmpty())
	neighbor.removed(theirs)
	c.Expect(c.cloud.Balancers.Left()).To(BeZero())
}

// owners returns the Services of the cluster with objects at the default location, as a new process finds them.
func (c *cluster) owners() []loadbalancer.Owner {
	c.t.Helper()
	c.start(nil)
	location, err := c.backend.Balancer.Locate(c.t.Context(), "")
	c.Expect(err).NotTo(HaveOccurred())
	owners, err := c.backend.Balancer.Owners(c.t.Context(), location)
	c.Expect(err).NotTo(HaveOccurred())
	return owners
}

// diesAt starts a process that dies at the given step of do, and reports whether it died.
func (c *cluster) diesAt(step int, after bool, do func() error) bool {
	d := &dyingBalancer{left: step, after: after}
	c.start(func(b cpi.Balancer) cpi.Balancer {
		d.Balancer = b
		return d
	})
	for range 20 {
		if err := do(); err == nil {
			return false
		}
		if d.left == 0 {
			return true
		}
	}
	c.t.Fatal("it is never done")
	return false
}
