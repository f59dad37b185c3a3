// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestDriftIsRepairedAndPublished(t *testing.T) {
	s, foreign, young := balanced("web"),
		balanced("foreign", func(s *corev1.Service) { class := "x"; s.Spec.LoadBalancerClass = &class }),
		balanced("young", func(s *corev1.Service) { s.Finalizers = nil })
	b := newBench(t, s, foreign, young)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.them.Start(ctx)

	pass := func() int {
		b.clock.Step(2 * defaultDrift)
		return b.balancer.left()
	}
	b.Eventually(pass).Should(Equal(2), "for the Service that Kubernetes passed")
	b.Eventually(func() []corev1.LoadBalancerIngress {
		stored, _ := b.client.CoreV1().Services("shop").Get(ctx, "web", metav1.GetOptions{})
		return stored.Status.LoadBalancer.Ingress
	}).Should(HaveLen(1))

	b.balancer.mu.Lock()
	delete(b.balancer.objects["main/web-uid"], "tcp-443")
	b.balancer.mu.Unlock()
	b.Expect(b.balancer.left()).To(Equal(1))
	b.Eventually(pass).Should(Equal(2))
}

func TestDriftIsRepairedWhileOthersOccupyTheLocation(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	free, ok := b.them.queues.locations.try("main")
	b.Expect(ok).To(BeTrue())
	defer free()
	b.balancer.mu.Lock()
	delete(b.balancer.objects["main/web-uid"], "tcp-443")
	b.balancer.mu.Unlock()

	b.them.Start(ctx)

	b.Eventually(func() int {
		b.clock.Step(2 * defaultDrift)
		return b.balancer.left()
	}).Should(Equal(2))
}

func TestLoadBalancersWithoutAServiceAreReported(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	owner := func(name string) loadbalancer.Owner {
		return loadbalancer.Owner{Cluster: "c1", Namespace: "shop", Name: name, UID: name + "-uid"}
	}
	b.balancer.owners = map[string][]loadbalancer.Owner{
		"main": {owner("web")},
		"slow": {owner("web"), owner("lost"), owner("gone")},
	}
	(&resync{balancers: b.them}).searchOrphans(t.Context())
	b.Expect(b.newEvents()).To(BeEmpty(), "no event without an object to report it on")
	b.them.opts.Self = &corev1.ObjectReference{Kind: "Pod", Name: "ccm"}

	(&resync{balancers: b.them}).searchOrphans(t.Context())

	b.Expect(b.newEvents()).To(ConsistOf(And(HavePrefix("Warning OrphanedLoadBalancers 2 load balancers at slow"),
		HaveSuffix("shop/gone (uid gone-uid), shop/lost (uid lost-uid)"))))
	b.Expect(b.balancer.runs).To(BeEmpty())
}

func TestLoadBalancersFollowNodeAddressChanges(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.Expect(b.client.Tracker().Add(worker("a", "10.0.0.1"))).To(Succeed())
	b.them.opts.NodeInformer = b.informer.Core().V1().Nodes().Informer()
	b.them.opts.Drift = 24 * time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.them.Start(ctx)
	b.informer.Start(ctx.Done())
	b.informer.WaitForCacheSync(ctx.Done())

	changed := worker("a", "10.0.0.99")
	_, err = b.client.CoreV1().Nodes().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.Eventually(func() string {
		b.clock.Step(nodeDebounce)
		b.balancer.mu.Lock()
		defer b.balancer.mu.Unlock()
		return b.balancer.at("main", "web-uid")["tcp-80"]
	}).Should(ContainSubstring("10.0.0.99"))
}

func TestAHangingLocationDoesNotBlockRepairsElsewhere(t *testing.T) {
	slow := balanced("slow", at("slow"))
	quick := balanced("quick")
	b := newBench(t, slow, quick)
	b.balancer.hold = make(chan struct{})
	defer close(b.balancer.hold)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.them.Start(ctx)
	stands := func() int {
		b.balancer.mu.Lock()
		defer b.balancer.mu.Unlock()
		return len(b.balancer.at("main", "quick-uid"))
	}
	pass := func() int {
		b.clock.Step(2 * defaultDrift)
		return stands()
	}
	b.Eventually(pass).Should(Equal(2), "while steps at the other location hang")

	b.balancer.mu.Lock()
	b.balancer.objects = nil // deleted manually
	b.balancer.mu.Unlock()

	b.Eventually(pass).Should(Equal(2))
}

func TestAnOldSpecIsNotAppliedAfterANewerOne(t *testing.T) {
	old := balanced("web", func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	b := newBench(t, old)
	now := balanced("web")
	b.services.add(now)
	_, err := b.ensure(now)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.left()).To(Equal(2))
	before := len(b.balancer.runs)

	b.them.repair(t.Context(), old)
	b.Expect(b.balancer.runs).To(HaveLen(before), "drift repair has listed Services before the change")

	b.Expect(b.them.UpdateLoadBalancer(t.Context(), "", old, nil)).To(Succeed())
	b.Expect(b.balancer.runs).To(HaveLen(before), "nodes are synced with the Services of that time")
}

func TestAServiceThatChangedItsClassSinceTheListIsNotRepaired(t *testing.T) {
	old := balanced("web")
	b := newBench(t, old)
	b.services.add(balanced("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/theirs") }))

	b.them.repair(t.Context(), old)
	b.Expect(b.them.UpdateLoadBalancer(t.Context(), "", old, nil)).To(Succeed())

	b.Expect(b.balancer.runs).To(BeEmpty())
}

func TestARepairDoesNotPublishKnownAddresses(t *testing.T) {
	old := balanced("web")
	b := newBench(t, old)
	status, err := b.ensure(old)
	b.Expect(err).NotTo(HaveOccurred())
	b.services.add(balanced("web", func(s *corev1.Service) { s.Status.LoadBalancer = *status }))
	writes := len(b.client.Actions())

	b.them.repair(t.Context(), old)

	b.Expect(b.client.Actions()).To(HaveLen(writes))
}
