// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

func (b *bench) withdrawals() *withdrawals {
	return newWithdrawals(Options{
		Client:    b.client,
		Informers: b.informer,
		Clock:     b.clock,
	}, b.them)
}

// store stores a Node in the API server and in the cache.
func (b *bench) store(nodes ...*corev1.Node) {
	for _, node := range nodes {
		b.ExpectWithOffset(1, b.client.Tracker().Add(node)).To(Succeed())
		b.nodes.add(node)
	}
}

// request requests the withdrawal of a worker.
func (b *bench) request(name, ip string, mods ...func(*corev1.Node)) {
	node := worker(name, ip)
	withdrawal.Request(node, b.clock.Now())
	for _, mod := range mods {
		mod(node)
	}
	b.store(node)
}

func included(node *corev1.Node) { delete(node.Labels, corev1.LabelNodeExcludeBalancers) }

func (b *bench) confirmed(name string) bool {
	node, err := b.client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	b.ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return withdrawal.IsConfirmed(node)
}

// portsWith returns the ports of a Service that send requests to an address.
func (b *bench) portsWith(location, name, address string) (ports []string) {
	b.balancer.mu.Lock()
	defer b.balancer.mu.Unlock()
	for port, text := range b.balancer.at(location, string(typesUID(name))) {
		if strings.Contains(text, address) {
			ports = append(ports, port)
		}
	}
	return ports
}

func TestAWithdrawalIsConfirmedOnceAllLoadBalancersAreUpdated(t *testing.T) {
	here := balanced("web")
	there := balanced("blog", at("slow"))
	b := newBench(t, here, there)
	b.nodes.add(worker("b", "10.0.0.2"))
	for _, s := range []*corev1.Service{here, there} {
		_, err := b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred())
	}
	b.Expect(b.portsWith("main", "web", "10.0.0.1")).To(HaveLen(2))
	w := b.withdrawals()
	b.request("a", "10.0.0.1")
	b.balancer.fail = func(s fakeStep) error {
		if s.uid == "blog-uid" {
			return loadbalancer.ErrBusy
		}
		return nil
	}

	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1))
	b.Expect(b.portsWith("main", "web", "10.0.0.1")).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeFalse(), "a load balancer still sends requests to it")

	b.balancer.fail = nil
	before := len(b.balancer.runs)
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.portsWith("slow", "blog", "10.0.0.1")).To(BeEmpty())
	b.Expect(b.balancer.runs[before:]).To(ConsistOf("slow create tcp-443", "slow create tcp-80"))
	b.Expect(b.confirmed("a")).To(BeTrue())

	writes := len(b.client.Actions())
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.client.Actions()).To(HaveLen(writes), "the cache does not show the confirmation yet")
}

func TestALoadBalancerThatWasUpdatedBeforeIsNotObservedAgain(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.nodes.add(worker("b", "10.0.0.2"))
	b.request("a", "10.0.0.1")
	b.Expect(b.them.UpdateLoadBalancer(t.Context(), "", s, nil)).To(Succeed())
	before := b.balancer.looks

	b.Expect(b.withdrawals().confirmAll(t.Context())).To(BeEmpty())

	b.Expect(b.confirmed("a")).To(BeTrue())
	b.Expect(b.balancer.looks).To(Equal(before))
}

func TestAfterARestartAWithdrawalIsConfirmedOnceTheLoadBalancersWereObserved(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.nodes.add(worker("b", "10.0.0.2"))
	b.request("a", "10.0.0.1")
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.configure(func(*LoadBalancerOptions) {}) // a new process
	w := b.withdrawals()
	b.balancer.planErr = loadbalancer.ErrUnknown

	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1))
	b.Expect(b.confirmed("a")).To(BeFalse())

	b.balancer.planErr = nil
	runs := len(b.balancer.runs)
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeTrue())
	b.Expect(b.balancer.runs).To(HaveLen(runs), "the load balancer was already updated")
}

func TestNodesThatAreWithdrawnTogetherCauseOneUpdatePerLoadBalancer(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	names := map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
	for name, ip := range names {
		b.store(worker(name, ip))
	}
	b.store(worker("d", "10.0.0.4"))
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	before := len(b.balancer.runs)
	w := b.withdrawals()
	w.Start(t.Context())
	b.informer.Start(t.Context().Done())
	b.informer.WaitForCacheSync(t.Context().Done())

	for name, ip := range names {
		node := worker(name, ip)
		withdrawal.Request(node, b.clock.Now())
		_, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		b.Expect(err).NotTo(HaveOccurred())
	}
	b.Eventually(func() ([]*corev1.Node, error) {
		nodes, err := b.options.Nodes.List(labels.Everything())
		return service.Eligible(nodes, false), err
	}).Should(ConsistOf(HaveField("Name", "d")))
	b.Eventually(b.clock.HasWaiters).Should(BeTrue(), "further requests are collected")
	b.Expect(b.balancer.runs).To(HaveLen(before))
	b.clock.Step(withdrawalDebounce)

	for name := range names {
		b.Eventually(b.confirmed).WithArguments(name).Should(BeTrue())
	}
	b.Expect(b.balancer.runs[before:]).To(ConsistOf("main create tcp-443", "main create tcp-80"))
}

func TestAnUnconfirmedWithdrawalIsRetried(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	node := worker("b", "10.0.0.2") // the cache does not have it yet
	withdrawal.Request(node, b.clock.Now())
	b.Expect(b.client.Tracker().Add(node)).To(Succeed())
	b.balancer.planErr = loadbalancer.ErrUnknown
	looks := func() int {
		b.balancer.mu.Lock()
		defer b.balancer.mu.Unlock()
		return b.balancer.looks
	}
	w := b.withdrawals()
	w.Start(t.Context())
	b.informer.Start(t.Context().Done())

	for range 3 {
		before := looks()
		b.Eventually(func() int {
			b.clock.Step(withdrawalRetry)
			return looks()
		}).Should(BeNumerically(">", before))
	}
	b.Expect(b.confirmed("b")).To(BeFalse())
}

func TestWithdrawalsAreRetriedWithBackoffUpToALimit(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.request("a", "10.0.0.1")
	b.balancer.planErr = loadbalancer.ErrUnknown
	w := b.withdrawals()

	left := w.confirmAll(t.Context())
	b.Expect(left).To(HaveLen(1))
	b.Expect(w.pause(left)).To(Equal(withdrawalRetry))
	b.clock.Step(80 * time.Second)
	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1))
	b.Expect(w.pause(left)).To(Equal(10 * time.Second))

	b.clock.Step(withdrawalTimeout)
	looks := b.balancer.looks
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.balancer.looks).To(Equal(looks))
	b.Expect(b.confirmed("a")).To(BeFalse())

	again := worker("a", "10.0.0.1")
	withdrawal.Request(again, b.clock.Now())
	b.nodes.add(again)
	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1), "a new request is tried again")
}

func TestOnlyRequestedWithdrawalsOfExcludedNodesAreConfirmed(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"a user excluded the node":                   func(n *corev1.Node) { n.Annotations = nil },
		"a user includes the node again":             included,
		"a user includes a control plane node again": func(n *corev1.Node) { included(n); n.Labels["node-role.kubernetes.io/control-plane"] = "" },
		"the withdrawal is confirmed":                withdrawal.Confirm,
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published)
			b := newBench(t, s)
			b.nodes.add(worker("b", "10.0.0.2"))
			b.request("a", "10.0.0.1", change)
			w := b.withdrawals()

			b.Expect(w.confirmAll(t.Context())).To(BeEmpty())

			b.Expect(b.client.Actions()).To(BeEmpty())
			b.Expect(b.balancer.looks).To(BeZero())
		})
	}
}

func TestAWithdrawalIsConfirmedAtOnceWithoutLoadBalancers(t *testing.T) {
	b := newBench(t, balanced("foreign", published, func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/theirs") }))
	b.request("a", "10.0.0.1")
	b.Expect(b.withdrawals().confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeTrue())

	b = newBench(t, balanced("web", published))
	b.request("a", "10.0.0.1")
	w := b.withdrawals()
	w.balancers = nil // the cloud has none
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeTrue())
}

func TestAServiceWithoutALoadBalancerDoesNotDelayAWithdrawal(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.refuse = func(service.Desired) []loadbalancer.Finding {
		return []loadbalancer.Finding{{Reason: "NoFreeAddress", Message: "the gateway has no free address"}}
	}
	_, err := b.ensure(s)
	b.mustRetry(err, "NoFreeAddress")
	b.request("a", "10.0.0.1")

	b.Expect(b.withdrawals().confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeTrue())
}

func TestAnAttemptWithAnOlderListOfNodesDelaysAWithdrawal(t *testing.T) {
	s := balanced("web", at("slow"))
	b := newBench(t, s)
	b.nodes.add(worker("b", "10.0.0.2"))
	b.balancer.hold = make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := b.ensure(s)
		done <- err
	}()
	b.Eventually(func() []string { return b.them.states.get(s.UID).members.planned.UnsortedList() }).Should(
		ConsistOf("a", "b"))
	w := b.withdrawals()
	b.request("a", "10.0.0.1")

	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1))
	b.Expect(b.confirmed("a")).To(BeFalse(), "the new load balancer is about to have it as a member")

	close(b.balancer.hold)
	b.Expect(<-done).To(Succeed())
	b.Expect(b.portsWith("slow", "web", "10.0.0.1")).To(HaveLen(2))
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.portsWith("slow", "web", "10.0.0.1")).To(BeEmpty())
	b.Expect(b.confirmed("a")).To(BeTrue())
}

func TestANodeThatAFailedAttemptAddedIsNotConfirmed(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.nodes.add(worker("b", "10.0.0.2"))
	b.balancer.fail = func(s fakeStep) error {
		if s.name == "tcp-80" {
			return loadbalancer.ErrBusy
		}
		return nil
	}
	_, err = b.ensure(s)
	b.mustRetry(err, "1 of 2 steps done")
	b.Expect(b.portsWith("main", "web", "10.0.0.2")).To(ConsistOf("tcp-443"))
	b.balancer.planErr = loadbalancer.ErrUnknown
	w := b.withdrawals()
	b.request("b", "10.0.0.2")

	b.Expect(w.confirmAll(t.Context())).To(HaveLen(1))
	b.Expect(b.confirmed("b")).To(BeFalse())

	b.balancer.fail = nil
	b.balancer.planErr = nil
	b.Expect(w.confirmAll(t.Context())).To(BeEmpty())
	b.Expect(b.portsWith("main", "web", "10.0.0.2")).To(BeEmpty())
	b.Expect(b.confirmed("b")).To(BeTrue())
}

func TestALoadBalancerThatCannotBeUpdatedDelaysAWithdrawal(t *testing.T) {
	finding := []loadbalancer.Finding{{Reason: "NoEngine", Message: "there is no service engine"}}
	for name, block := range map[string]func(*bench){
		"a refused Service": func(b *bench) {
			b.balancer.refuse = func(service.Desired) []loadbalancer.Finding { return finding }
		},
		"a load balancer that the cloud can only create in part": func(b *bench) { b.balancer.stuck = finding },
		"a load balancer with changes in progress":               func(b *bench) { b.balancer.pending = true },
		"a dry run": func(b *bench) {
			b.services.add(balanced("web", published, func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.DryRun, "true")
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published)
			b := newBench(t, s)
			_, err := b.ensure(s)
			b.Expect(err).NotTo(HaveOccurred())
			b.nodes.add(worker("b", "10.0.0.2"))
			b.request("a", "10.0.0.1")
			block(b)

			b.Expect(b.withdrawals().confirmAll(t.Context())).To(HaveLen(1))
			b.Expect(b.confirmed("a")).To(BeFalse())
		})
	}
}

func TestAConfirmationIsRetriedWhileTheNodeExists(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, tt := range map[string]struct {
		err  error
		left int
	}{
		"the API server is unavailable": {errors.New("unavailable"), 1},
		"the Node was deleted":          {apierrors.NewNotFound(nodes, "a"), 0},
		"another Node has its name":     {apierrors.NewConflict(nodes, "a", errors.New("UID")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.request("a", "10.0.0.1")
			b.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, tt.err
			})

			b.Expect(b.withdrawals().confirmAll(t.Context())).To(HaveLen(tt.left))
			b.Expect(b.confirmed("a")).To(BeFalse())
		})
	}
}
