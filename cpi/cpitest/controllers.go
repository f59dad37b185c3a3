// SPDX-License-Identifier: Apache-2.0

package cpitest

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudapi "k8s.io/cloud-provider/api"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/component-base/featuregate"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

const (
	// timeout is the timeout for the controllers, which retry after five seconds.
	timeout = "60s"
	// pollInterval is the polling interval.
	pollInterval = "20ms"
)

// runControllers runs the node, lifecycle and, if the cloud has load balancers, service controllers until the test
// ends.
func (c *cluster) runControllers() {
	metrics := controllersmetrics.NewControllerManagerMetrics("test")
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	c.t.Cleanup(running.Wait)
	c.t.Cleanup(cancel)
	core := c.informer.Core().V1()
	nodes, err := nodecontroller.NewCloudNodeController(core.Nodes(), c.client, c.provider, time.Hour, 1, 1)
	c.Expect(err).NotTo(HaveOccurred())
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(core.Nodes(), c.client, c.provider,
		10*time.Millisecond)
	c.Expect(err).NotTo(HaveOccurred())
	running.Go(func() { nodes.Run(ctx.Done(), metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	if c.cloud.Balancers == nil {
		return
	}
	services, err := servicecontroller.New(c.provider, c.client, core.Services(), core.Nodes(), "test",
		featuregate.NewFeatureGate())
	c.Expect(err).NotTo(HaveOccurred())
	running.Go(func() { services.Run(ctx, 1, metrics) })
}

// now returns the current Node from the API server, or nil if it does not exist.
func (c *cluster) now(name string) *corev1.Node {
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return node
}

// taint adds the taint with which a Node waits for its initialization.
func (c *cluster) taint(name string) {
	c.Eventually(func() error {
		node := c.now(name)
		node.Spec.Taints = []corev1.Taint{{
			Key:    cloudapi.TaintExternalCloudProvider,
			Value:  "true",
			Effect: corev1.TaintEffectNoSchedule,
		}}
		_, err := c.client.CoreV1().Nodes().Update(c.t.Context(), node, metav1.UpdateOptions{})
		return err
	}, timeout, pollInterval).Should(Succeed())
}

func (c *cluster) initialized(name string) {
	c.Eventually(func(g Gomega) {
		node := c.now(name)
		g.Expect(node.Spec.Taints).To(BeEmpty())
		g.Expect(node.Spec.ProviderID).To(HavePrefix(c.provider.ProviderName() + "://"))
		g.Expect(node.Status.Addresses).To(ContainElement(
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: c.cloud.Machines[name]}))
	}, timeout, pollInterval).Should(Succeed())
}

// nodesLive runs the controllers of Kubernetes on Nodes. They initialize Nodes, repeat that for Nodes that are tainted
// again, taint Nodes of stopped machines, and delete Nodes of deleted machines.
func (c *cluster) nodesLive() {
	all := c.machines()
	for _, name := range all {
		c.taint(name)
	}
	c.waitForInformers()
	c.runControllers()
	for _, name := range all {
		c.initialized(name)
	}
	c.taint(all[0])
	c.initialized(all[0])

	c.cloud.PowerOff(all[1])
	c.cloud.Remove(all[2])
	for _, name := range all[1:] {
		node := c.now(name)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		_, err := c.client.CoreV1().Nodes().UpdateStatus(c.t.Context(), node, metav1.UpdateOptions{})
		c.Expect(err).NotTo(HaveOccurred())
	}
	c.Eventually(func(g Gomega) {
		c.clock.Step(time.Minute)
		g.Expect(c.now(all[1]).Spec.Taints).To(ContainElement(HaveField("Key", cloudapi.TaintNodeShutdown)))
		g.Expect(c.now(all[2])).To(BeNil())
	}, timeout, pollInterval).Should(Succeed())
	c.Expect(c.now(all[0]).Spec.Taints).To(BeEmpty())
}

// servicesLive runs the service controller of Kubernetes. It publishes a Service, and removes the load balancer when
// the type of the Service changes.
func (c *cluster) servicesLive() {
	c.balancer()
	s := template("shop")
	s.Finalizers = nil
	c.Expect(c.client.Tracker().Add(s)).To(Succeed())
	c.waitForInformers()
	c.runControllers()
	c.Eventually(func(g Gomega) {
		now := c.stored(s)
		g.Expect(servicehelpers.HasLBFinalizer(now)).To(BeTrue())
		g.Expect(now.Status.LoadBalancer.Ingress).To(HaveLen(1))
		g.Expect(c.cloud.Balancers.Standing()).To(Equal(
			map[string]string{now.Status.LoadBalancer.Ingress[0].IP + ":80": c.membersExcept()}))
	}, timeout, pollInterval).Should(Succeed())

	c.Eventually(func() error {
		now := c.stored(s)
		now.Spec.Type = corev1.ServiceTypeClusterIP
		_, err := c.client.CoreV1().Services(s.Namespace).Update(c.t.Context(), now, metav1.UpdateOptions{})
		return err
	}, timeout, pollInterval).Should(Succeed())
	c.Eventually(func(g Gomega) {
		g.Expect(servicehelpers.HasLBFinalizer(c.stored(s))).To(BeFalse())
		g.Expect(c.cloud.Balancers.Left()).To(BeZero())
	}, timeout, pollInterval).Should(Succeed())
}
