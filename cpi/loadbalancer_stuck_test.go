// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestUnrealizedLoadBalancersAreReportedAndPublished(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	problems := func() (out []string) {
		stored, err := b.client.CoreV1().Services("shop").Get(context.Background(), "web", metav1.GetOptions{})
		b.Expect(err).NotTo(HaveOccurred())
		b.services.add(stored)
		s = stored
		for _, i := range stored.Status.LoadBalancer.Ingress {
			out = append(out, i.IP)
			for _, p := range i.Ports {
				if p.Error != nil {
					out = append(out, *p.Error)
				}
			}
		}
		return out
	}
	b.them.repair(t.Context(), s)
	b.Expect(problems()).To(Equal([]string{"203.0.113.10"}))
	runs := len(b.balancer.runs)
	b.balancer.stuck = []loadbalancer.Finding{{Reason: "RealizationFailed", Message: "the pool is not made"}}

	for range 3 {
		_, err := b.ensure(s)
		b.mustRetry(err, "RealizationFailed")
		b.them.repair(t.Context(), s)
		b.Expect(problems()).To(Equal([]string{"203.0.113.10", "RealizationFailed"}), "clients keep the address")
	}
	b.Expect(b.newEvents()).To(Equal([]string{"Warning RealizationFailed the pool is not made"}))
	b.Expect(b.balancer.runs).To(HaveLen(runs))

	b.balancer.stuck = nil
	b.them.repair(t.Context(), s)
	b.Expect(problems()).To(Equal([]string{"203.0.113.10"}))
	b.Expect(b.newEvents()).To(ConsistOf(HavePrefix("Normal LoadBalancerRecovered")))
}

func TestUnrealizedNewLoadBalancersAreKept(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.stuck = []loadbalancer.Finding{{Reason: "RealizationFailed", Message: "the pool is not made"}}

	status, err := b.ensure(s)

	b.mustRetry(err, "RealizationFailed")
	b.Expect(status).To(Equal(&corev1.LoadBalancerStatus{}))
	b.Expect(b.balancer.left()).To(Equal(2), "it is retried unchanged, not recreated each time")
}

func TestABlockedDeletionIsReportedWithARemedy(t *testing.T) {
	refused := func(text string) error { return fmt.Errorf("%w: %s", loadbalancer.ErrRefused, text) }
	for _, tc := range []struct {
		name      string
		s         *corev1.Service
		damage    func(*fakeBalancer)
		newEvents []string // words of one event; empty: no event
	}{
		{
			name:      "a configured gateway that cannot be found, on which the Service may have been",
			s:         balanced("web"),
			damage:    func(f *fakeBalancer) { f.lost = map[string]error{"slow": refused("no network dmz")} },
			newEvents: []string{"Warning LoadBalancerNotDeleted", "gateway slow", "no network dmz", "correct the entry"},
		},
		{
			name:   "a deleted gateway on which the Service has been",
			s:      balanced("web", recordedAt("main")),
			damage: func(f *fakeBalancer) { f.planErr = refused("no such gateway") },
			newEvents: []string{
				"Warning LoadBalancerNotDeleted", "at main", "no such gateway",
				"ConfigMap kube-system/cloud-controller-manager-services",
			},
		},
		{
			name:   "an outage, which ends by itself",
			s:      balanced("web"),
			damage: func(f *fakeBalancer) { f.lost = map[string]error{"slow": loadbalancer.ErrUnknown} },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, tc.s)
			tc.damage(b.balancer)

			for range 2 {
				_, _, err := b.them.GetLoadBalancer(t.Context(), "", tc.s)
				b.Expect(err).To(HaveOccurred(), "it is kept")
			}

			newEvents := b.newEvents()
			b.Expect(newEvents).To(HaveLen(min(1, len(tc.newEvents))), "once")
			for _, words := range tc.newEvents {
				b.Expect(newEvents[0]).To(ContainSubstring(words))
			}
		})
	}
}

func TestALocationThatCannotBeFoundYetIsCheckedLater(t *testing.T) {
	s := balanced("web", published) // by a predecessor, which has stored nothing
	b := newBench(t, s)
	b.balancer.lost = map[string]error{"slow": fmt.Errorf("%w: no network dmz", loadbalancer.ErrRefused)}
	b.balancer.at("slow", "web-uid")["tcp-80"] = "from before"
	places := func() string { return strings.Join(b.recordOf(s).Locations, ",") }

	for range 2 {
		_, err := b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(places()).To(Equal("main,?slow"))
	}
	_, exists, err := b.them.GetLoadBalancer(t.Context(), "", s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeTrue(), "visible locations are not blocked")
	for range 2 {
		b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "",
			s)).To(MatchError(ContainSubstring("no network dmz")))
		b.Expect(b.balancer.at("main", "web-uid")).To(BeEmpty(), "deletable objects are deleted")
	}
	b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("gateway slow")))
	_, _, err = b.them.GetLoadBalancer(t.Context(), "", s)
	b.Expect(err).To(MatchError(ContainSubstring("no network dmz")), "it is not reported gone")

	b.balancer.lost = nil
	_, err = b.them.locations.all(t.Context()) // as happens once an hour
	b.Expect(err).NotTo(HaveOccurred())
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.at("slow", "web-uid")).To(BeEmpty())
	b.Expect(places()).To(Equal("main"))
}

func TestRecordsOfMissingLocationsHideNothing(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.record(s, "?nowhere")
	b.them.states.forget(s.UID)

	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())

	b.Expect(b.balancer.left()).To(BeZero())
}

func TestAForgedLocationDoesNotBlockTheDeletion(t *testing.T) {
	for name, value := range map[string]string{
		"manually":                       "invisible",
		"like a copy of another Service": "invisible=90c1f7a2e4b85d36",
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, value)
			})
			b := newBench(t, s)
			b.balancer.gone = map[string]error{"invisible": loadbalancer.ErrRefused}

			_, err := b.ensure(s)
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())

			b.Expect(b.balancer.left()).To(BeZero())
			b.Expect(b.newEvents()).To(ContainElement(And(HavePrefix("Warning InvalidAnnotation"),
				ContainSubstring("was not written by the cloud controller manager for this Service"))))
		})
	}
}

func TestAnInvisibleLocationDoesNotBlockRemovalsElsewhere(t *testing.T) {
	for name, err := range map[string]error{
		"because it is unresponsive": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown),
		"because of a missing right": fmt.Errorf("%w: no right", loadbalancer.ErrRefused),
	} {
		for _, order := range [][]string{{"old", "main"}, {"main", "old"}} {
			t.Run(name+", "+order[0]+" first", func(t *testing.T) {
				s := balanced("web", recordedAt(order...))
				b := newBench(t, s)
				for _, place := range order {
					b.balancer.at(place, "web-uid")["tcp-80"] = "from before"
				}
				b.balancer.gone = map[string]error{"old": err}

				_, exists, seen := b.them.GetLoadBalancer(t.Context(), "", s)
				b.Expect(seen).NotTo(HaveOccurred())
				b.Expect(exists).To(BeTrue(), "visible objects are removed")
				b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(err))
				b.Expect(b.balancer.at("main", "web-uid")).To(BeEmpty())
				_, _, seen = b.them.GetLoadBalancer(t.Context(), "", s)
				b.Expect(seen).To(MatchError(err), "it is not gone")

				b.clock.Step(24 * time.Hour)
				b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(err), "it never counts as gone after a while")
				b.balancer.gone = nil
				b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
				b.Expect(b.balancer.left()).To(BeZero())
			})
		}
	}
}

func TestSharedObjectsAreRemovedDespiteAnOldLocation(t *testing.T) {
	s := balanced("web", recordedAt("main", "older", "old"))
	b := newBench(t, s)
	for name, place := range map[string]string{"shared-free": "main", "shared-used": "main", "tcp-80": "older"} {
		b.balancer.at(place, "web-uid")[name] = "from before"
	}
	b.balancer.gone = map[string]error{"old": fmt.Errorf("%w: no right", loadbalancer.ErrRefused)}
	refusals := 0
	b.balancer.fail = func(s fakeStep) error {
		if s.name == "shared-used" {
			refusals++
			return fmt.Errorf("%w: it is in use", loadbalancer.ErrRefused)
		}
		return nil
	}

	for range 3 {
		_, err := b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred(), "the load balancer is as desired")
		b.Expect(b.recordOf(s).Locations).To(Equal([]string{"main", "old"}))
	}

	b.Expect(b.balancer.at("main", "web-uid")).To(And(HaveLen(3), HaveKey("shared-used")))
	b.Expect(b.balancer.at("older", "web-uid")).To(BeEmpty())
	b.Expect(refusals).To(Equal(1), "it is not retried repeatedly")
	b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("at old yet")))
}
