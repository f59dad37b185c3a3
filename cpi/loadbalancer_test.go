// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
	servicehelpers "k8s.io/cloud-provider/service/helpers"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestALoadBalancerIsCreatedAndDeleted(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)

	status, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	mode := corev1.LoadBalancerIPModeVIP
	b.Expect(status.Ingress).To(Equal([]corev1.LoadBalancerIngress{{
		IP:     "203.0.113.10",
		IPMode: &mode,
		Ports:  []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 443, Protocol: corev1.ProtocolTCP}},
	}}))
	b.Expect(b.recordOf(s)).To(Equal(service.Record{
		Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.10")},
		Locations: []string{"main"},
	}))
	runs := len(b.balancer.runs)
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.runs).To(HaveLen(runs), "the second reconcile changes nothing, although the cached Service is old")
	b.Expect(b.newEvents()).To(BeEmpty())

	_, exists, err := b.them.GetLoadBalancer(context.Background(), "", s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeTrue())
	b.Expect(b.them.EnsureLoadBalancerDeleted(context.Background(), "", s)).To(Succeed())
	_, exists, err = b.them.GetLoadBalancer(context.Background(), "", s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeFalse())
	b.Expect(b.balancer.left()).To(BeZero())
	b.Expect(b.recordOf(s)).To(BeZero())
}

func TestUnknownLoadBalancersAreNotGone(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.planErr = loadbalancer.ErrUnknown

	_, _, err := b.them.GetLoadBalancer(context.Background(), "", s)

	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.them.EnsureLoadBalancerDeleted(context.Background(), "", s)).To(MatchError(loadbalancer.ErrUnknown))
}

func TestPreviouslyInvisibleLoadBalancersAreNotGone(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.balancer.stale = true // as when another process created it after our observation

	_, exists, err := b.them.GetLoadBalancer(context.Background(), "", s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeTrue())
}

func TestPreviouslyInvisibleLoadBalancersAreRemoved(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.balancer.stale = true

	b.Expect(b.them.EnsureLoadBalancerDeleted(context.Background(), "", s)).To(Succeed())

	b.Expect(b.balancer.left()).To(BeZero())
}

func TestAnotherClassIsNotReconciled(t *testing.T) {
	class := "other"
	s := balanced("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class })
	b := newBench(t, s)

	_, err := b.ensure(s)

	b.Expect(err).To(BeIdenticalTo(cloudprovider.ImplementedElsewhere), "compared as Kubernetes does")
}

func TestARejectedServiceIsReportedOnceAndRecovers(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.refuse = func(service.Desired) []loadbalancer.Finding {
		return []loadbalancer.Finding{{Reason: "CertificateNotFound", Message: "no certificate shop"}}
	}

	for range 3 {
		_, err := b.ensure(s)
		b.mustRetry(err, "CertificateNotFound")
	}
	b.Expect(b.newEvents()).To(Equal([]string{"Warning CertificateNotFound no certificate shop"}))
	b.Expect(b.balancer.runs).To(BeEmpty())

	b.balancer.refuse = nil
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.newEvents()).To(ConsistOf(HavePrefix("Normal LoadBalancerRecovered")))
	b.balancer.refuse = func(service.Desired) []loadbalancer.Finding {
		return []loadbalancer.Finding{{Reason: "CertificateNotFound", Message: "no certificate shop"}}
	}
	_, err = b.ensure(s)
	b.mustRetry(err, "CertificateNotFound")
	b.Expect(b.newEvents()).To(HaveLen(1), "reported again if it recurs")
	b.Expect(b.balancer.left()).To(Equal(2), "a working load balancer is kept")
}

func TestAnInvalidAnnotationIsReportedWithoutRequests(t *testing.T) {
	s := balanced("web", func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.DryRun, "perhaps")
	})
	b := newBench(t, s)

	_, err := b.ensure(s)

	b.mustRetry(err, "InvalidAnnotation")
	b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("perhaps")))
}

func TestARejectedStepLeavesNoPartialLoadBalancer(t *testing.T) {
	tests := []struct {
		name string
		mod  func(*corev1.Service)
		old  bool
		left int
	}{
		{"of a new load balancer", func(*corev1.Service) {}, false, 0},
		{"but it keeps the parts of a working load balancer", published, false, 1},
		{"and of a load balancer created by a predecessor", func(*corev1.Service) {}, true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := balanced("web", tt.mod)
			b := newBench(t, s)
			b.balancer.old = tt.old
			b.balancer.fail = func(step fakeStep) error {
				if step.verb == "create" && step.name == "tcp-80" {
					return fmt.Errorf("%w: the right is missing", loadbalancer.ErrRefused)
				}
				return nil
			}

			_, err := b.ensure(s)

			b.mustRetry(err, "LoadBalancerRejected")
			b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("the right is missing")))
			b.Expect(b.balancer.left()).To(Equal(tt.left))
		})
	}
}

func TestWaitingReportsProgress(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.fail = func(step fakeStep) error {
		if step.name == "tcp-80" {
			return loadbalancer.ErrBusy
		}
		return nil
	}
	_, err := b.ensure(s)
	b.mustRetry(err, "1 of 2 steps done")

	b.balancer.fail = nil
	b.balancer.pending = true
	_, err = b.ensure(s)
	b.mustRetry(err, "0 of 1 ready")
	b.balancer.pending = false

	joins := func(name string) {
		b.nodes.add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			CreationTimestamp: metav1.NewTime(b.clock.Now()),
		}})
	}
	joins("b")
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred(), "a new node does not block others")
	joins("a")
	_, err = b.ensure(s)
	b.mustRetry(err, "node b")
	b.Expect(b.newEvents()).To(BeEmpty(), "waiting is not an unmet request")
}

func TestAnIneffectiveWriteIsNotRepeatedForever(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.lagging = true

	_, err := b.ensure(s)

	b.mustRetry(err, "waiting for the cloud to apply changes")
	b.Expect(b.balancer.runs).To(HaveLen(2))
}

func TestAServiceThatWaitsForOthersHasOneEventPerWait(t *testing.T) {
	s := balanced("web", at("slow"))
	b := newBench(t, s)
	waitInVain := func() {
		waited := make(chan error, 1)
		go func() {
			_, err := b.ensure(s)
			waited <- err
		}()
		b.Eventually(b.clock.HasWaiters).Should(BeTrue())
		b.clock.Step(slotTimeout)
		var err error
		b.Eventually(waited).Should(Receive(&err))
		b.mustRetry(err, "gateway slow")
	}
	waiting := ContainElement(HavePrefix("Normal LoadBalancerWaiting Waiting for other load balancers at gateway slow"))
	free, ok := b.them.queues.locations.try("slow")
	b.Expect(ok).To(BeTrue())

	waitInVain()
	b.Expect(b.newEvents()).To(waiting)
	waitInVain()
	b.Expect(b.newEvents()).NotTo(waiting, "a retry is the same wait")

	free()
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	free, ok = b.them.queues.locations.try("slow")
	b.Expect(ok).To(BeTrue())
	defer free()
	waitInVain()
	b.Expect(b.newEvents()).To(waiting, "it is another wait")
}

func TestASlowLocationDoesNotBlockOthers(t *testing.T) {
	slow := balanced("slow", at("slow"))
	next := balanced("next", at("slow"))
	quick := balanced("quick")
	b := newBench(t, slow, next, quick)
	b.balancer.hold = make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		_, err := b.ensure(slow)
		finished <- err
	}()
	b.Eventually(func() bool {
		free, ok := b.them.queues.locations.try("slow")
		if ok {
			free()
		}
		return ok
	}).Should(BeFalse())

	waited := make(chan error, 1)
	go func() {
		_, err := b.ensure(next)
		waited <- err
	}()
	b.Eventually(b.clock.HasWaiters).Should(BeTrue())
	_, err := b.ensure(quick)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.them.UpdateLoadBalancer(context.Background(), "", next, nil)).To(Succeed(), "an update does not wait")
	b.clock.Step(slotTimeout)
	b.Eventually(waited).Should(Receive(&err))
	b.mustRetry(err, "gateway slow")

	deleted := make(chan error, 1)
	go func() { deleted <- b.them.EnsureLoadBalancerDeleted(context.Background(), "", next) }()
	b.Eventually(b.clock.HasWaiters).Should(BeTrue())
	b.clock.Step(slotTimeout)
	b.Eventually(deleted).Should(Receive(MatchError(loadbalancer.ErrBusy)),
		"the deletion waits, because it cannot request a retry soon")

	close(b.balancer.hold)
	b.Eventually(finished).Should(Receive(BeNil()))
}

func TestAMovedLoadBalancerIsRemovedFromItsOldLocation(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())

	moved := balanced("web", at("slow"))
	b.services.add(moved)
	_, err = b.ensure(moved)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.objects["main/web-uid"]).To(BeEmpty())
	b.Expect(b.balancer.objects["slow/web-uid"]).To(HaveLen(2))
	b.Expect(slices.IndexFunc(b.balancer.runs,
		func(r string) bool { return strings.HasPrefix(r, "main delete") })).To(BeNumerically(">",
		slices.IndexFunc(b.balancer.runs, func(r string) bool { return strings.HasPrefix(r, "slow create") })),
		"the new load balancer is created first")
}

func TestALoadBalancerIsCreatedOnAReplacementGateway(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.balancer.gone = map[string]error{"main": fmt.Errorf("%w: no such gateway", loadbalancer.ErrRefused)}

	_, err = b.ensure(s)
	b.mustRetry(err, "LoadBalancerRejected")
	b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("no such gateway")), "as long as it is the only one")

	b.balancer.same = map[string]string{"": "new"}
	_, err = b.ensure(s)
	b.mustRetry(err, "was replaced by another object")
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.objects["new/web-uid"]).To(HaveLen(2))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(ContainSubstring("no such gateway")),
		"the load balancer at the old location is not reported gone")
}

func TestADryRunChangesNothing(t *testing.T) {
	s := balanced("web",
		func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.DryRun, "true") })
	b := newBench(t, s)

	for range 2 {
		_, err := b.ensure(s)
		b.Expect(err).To(BeIdenticalTo(cloudprovider.ImplementedElsewhere),
			"otherwise Kubernetes emits that the load balancer was ensured")
	}

	b.Expect(b.balancer.runs).To(BeEmpty())
	b.Expect(b.newEvents()).To(ConsistOf(And(HavePrefix("Normal LoadBalancerPlanned"), ContainSubstring("create tcp-80"))))
}

func TestALoadBalancerBeingCreatedIsNotReportedAbsent(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	unlock, err := b.them.queues.services.wait(t.Context(), string(s.UID), nil) // a repair runs
	b.Expect(err).NotTo(HaveOccurred())
	answers := make(chan bool)
	go func() {
		_, exists, _ := b.them.GetLoadBalancer(t.Context(), "", s)
		answers <- exists
	}()

	b.Consistently(answers, "50ms").ShouldNot(Receive())
	b.balancer.mu.Lock()
	b.balancer.at("main", string(s.UID))["tcp-80"] = "made meanwhile"
	b.balancer.mu.Unlock()
	unlock()

	b.Eventually(answers).Should(Receive(BeTrue()))
}

func TestARejectedStepIsRetriedWithBackoff(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	tries := 0
	b.balancer.fail = func(step fakeStep) error {
		if step.verb == "create" && step.name == "tcp-80" {
			tries++
			return fmt.Errorf("the quota is used up: %w", loadbalancer.ErrRefused)
		}
		return nil
	}

	for range 40 { // minutes
		_, err := b.ensure(s)
		b.Expect(err).To(HaveOccurred())
		b.clock.Step(time.Minute)
	}
	b.Expect(tries).To(BeNumerically("~", 6, 1), "after 1, 2, 4, 8, 10, 10 minutes")

	before := tries
	s.Spec.Ports[0].NodePort++
	_, _ = b.ensure(s)
	b.Expect(tries).To(Equal(before+1), "a change is tried at once")

	b.balancer.fail = nil
	b.clock.Step(maxRefusalBackoff)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
}

func TestAPendingNodeUpdateIsNotAFailure(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.pending = true
	_, err := b.ensure(s)
	b.mustRetry(err, "realized")

	b.Expect(b.them.UpdateLoadBalancer(t.Context(), "", s, nil)).To(Succeed(),
		"Kubernetes would emit a Warning for each Service")
}

func TestNodesAreUpdatedWhileAServiceIsRejected(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.balancer.refuse = func(service.Desired) []loadbalancer.Finding {
		return []loadbalancer.Finding{{Reason: "CertificateNotFound", Message: "no such alias"}}
	}
	s.Spec.Ports[0].NodePort = 31111
	b.nodes.add(worker("b", "10.0.0.2"))

	_, err = b.ensure(s)

	b.mustRetry(err, "CertificateNotFound")
	b.Expect(b.balancer.at("main", "web-uid")).To(And(HaveLen(2), HaveEach(HaveSuffix("[10.0.0.1 10.0.0.2]"))))
	b.Expect(b.balancer.at("main", "web-uid")["tcp-80"]).To(HavePrefix("30080 "), "the rest is unchanged")
}

func TestNodesAreUpdatedWhereverPossible(t *testing.T) {
	s := balanced("web", published, recordedAt("lost", "main", "slow"))
	b := newBench(t, s)
	for _, location := range []string{"lost", "main", "slow"} {
		b.balancer.at(location, "web-uid")["tcp-80"] = "30080 [10.0.0.1]"
	}
	b.balancer.gone = map[string]error{"lost": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}
	b.balancer.refuse = func(service.Desired) []loadbalancer.Finding { return []loadbalancer.Finding{{Reason: "NoFreeAddress"}} }
	b.nodes.add(worker("b", "10.0.0.2"))

	_, err := b.ensure(s)

	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	for _, location := range []string{"main", "slow"} {
		b.Expect(b.balancer.at(location, "web-uid")).To(HaveKeyWithValue("tcp-80", "30080 [10.0.0.1 10.0.0.2]"))
	}
}

func TestAnIntentIsStoredEvenIfNothingElseRemains(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.balancer.at("main", "web-uid")["tcp-80"] = "30080 [10.0.0.1]"
	b.balancer.at("main", "web-uid")["tcp-443"] = "30443 [10.0.0.1]"

	status, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(status.Ingress).To(HaveLen(1))
	b.Expect(b.recordOf(s).Addresses).NotTo(BeEmpty())
	b.Expect(b.balancer.runs).To(BeEmpty())
}

func TestNodesAreUpdatedDespiteRejections(t *testing.T) {
	tests := map[string]func(*corev1.Service){
		"source ranges that a predecessor ignored": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		},
		"a location that is not in the configuration": func(s *corev1.Service) {
			s.Annotations = map[string]string{servicetest.Location: "typo"}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published, change) // after an upgrade, when nothing is stored on it
			b := newBench(t, s)
			b.balancer.at("main", "web-uid")["tcp-80"] = "30080 [10.0.0.1]"
			b.nodes.add(worker("b", "10.0.0.2"))

			_, err := b.ensure(s)

			b.mustRetry(err, "see its events")
			b.Expect(b.balancer.at("main", "web-uid")).To(HaveKeyWithValue("tcp-80", "30080 [10.0.0.1 10.0.0.2]"))
			b.Expect(b.newEvents()).To(HaveLen(1))
		})
	}
}

func TestAnAPIServerWithoutIPModeIsNotPatchedRepeatedly(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	status, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	s.Status.LoadBalancer = *status.DeepCopy()
	s.Status.LoadBalancer.Ingress[0].IPMode = nil // as Kubernetes 1.28 stores it

	status, err = b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(servicehelpers.LoadBalancerStatusEqual(&s.Status.LoadBalancer, status)).To(BeTrue())
}

// TestADeletedServiceReservesNothing deletes a Service whose reconcile failed between its plan and its first step, and
// whose finalizer was removed by force.
func TestADeletedServiceReservesNothing(t *testing.T) {
	gone := balanced("gone", func(s *corev1.Service) { s.UID = "gone-uid" })
	b := newBench(t, balanced("web"))
	use := loadbalancer.Use{
		Address: netip.MustParseAddr("203.0.113.10"),
		Owner:   loadbalancer.Owner{UID: "gone-uid"},
	}
	b.them.states.change(gone.UID, func(s *serviceState) {
		s.location = "main"
		s.uses = []loadbalancer.Use{use}
	})

	uses, err := b.reservationsOfOthers("main", "web-uid")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(uses).To(BeEmpty())

	unlock, ok := b.them.queues.services.try(string(gone.UID))
	b.Expect(ok).To(BeTrue())
	uses, err = b.reservationsOfOthers("main", "web-uid")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(uses).To(ConsistOf(use), "its attempt still runs")
	unlock()

	b.services.add(gone)
	uses, err = b.reservationsOfOthers("main", "web-uid")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(uses).To(ConsistOf(use), "it exists")
}
