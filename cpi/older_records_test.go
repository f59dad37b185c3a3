// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// withDigest adds digests to values, as some builds did.
func withDigest(_ *corev1.Service, values ...string) string {
	var out []string
	for _, value := range values {
		out = append(out, value+"=90c1f7a2e4b85d36")
	}
	return strings.Join(out, ",")
}

// without returns a value without a digest, as older builds wrote it.
func without(_ *corev1.Service, values ...string) string { return values[0] }

// older sets the annotations of a Service, and updates the cache.
func (b *bench) older(s *corev1.Service) service.Older { return benchDefaults.Stored(b.now(s)).Older }

// now returns a Service from the API server, and updates the cache.
func (b *bench) now(s *corev1.Service) *corev1.Service {
	now, err := b.client.CoreV1().Services(s.Namespace).Get(context.Background(), s.Name, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	b.services.add(now)
	return now
}

func TestOlderRecordsAreTrustedAsFarAsTheCloudConfirmsThem(t *testing.T) {
	address := netip.MustParseAddr("203.0.113.10")
	for name, bind := range map[string]func(*corev1.Service, ...string) string{
		"with a digest":    withDigest,
		"without a digest": without,
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published, func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.OlderLocations: bind(s, "retired"),
					servicetest.OlderAddresses: bind(s, address.String()),
				}
			})
			b := newBench(t, s)
			b.balancer.at("retired", "web-uid")["tcp-80"] = "30080 [10.0.0.1]" // no longer in the configuration

			_, err := b.ensure(s)

			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(b.balancer.objects["retired/web-uid"]).To(BeEmpty(), "it was found and removed")
			b.Expect(b.recordOf(s)).To(Equal(service.Record{
				Addresses: []netip.Addr{address},
				Locations: []string{"main"},
			}))
			b.Expect(b.older(s)).To(BeZero(), "it is read once")
			b.Expect(b.newEvents()).To(BeEmpty())
		})
	}
}

func TestAForgedAnnotationIsNeitherTrustedNorKept(t *testing.T) {
	for name, bind := range map[string]func(*corev1.Service, ...string) string{
		"with a digest":    withDigest,
		"without a digest": without,
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.OlderLocations: bind(s, "invisible"),
					servicetest.OlderAddresses: bind(s, "203.0.113.99"),
				}
			})
			b := newBench(t, s)
			b.balancer.gone = map[string]error{"invisible": loadbalancer.ErrRefused}
			_, exists, err := b.them.GetLoadBalancer(t.Context(), "", s)
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(exists).To(BeFalse())

			status, err := b.ensure(s)

			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(status.Ingress).To(ConsistOf(HaveField("IP", "203.0.113.10")))
			b.Expect(b.recordOf(s)).To(Equal(service.Record{
				Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.10")},
				Locations: []string{"main"},
			}))
			b.Expect(b.older(s)).To(BeZero(), "it is read once")
			b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("intent, or a part"), ContainSubstring("standing, or a part")))
		})
	}
}

func TestInvisibilityIsNoProofAfterAnAddressWasPublished(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		s.Annotations = map[string]string{servicetest.OlderLocations: withDigest(s, "retired")}
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"retired": loadbalancer.ErrRefused}

	_, _, err := b.them.GetLoadBalancer(t.Context(), "", s)
	b.Expect(err).To(MatchError(loadbalancer.ErrRefused), "the finalizer is kept")
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).NotTo(Succeed())
}

func TestNothingIsConfirmedDuringAnOutage(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		s.Annotations = map[string]string{servicetest.OlderLocations: withDigest(s, "retired")}
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"retired": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}

	_, err := b.ensure(s)
	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.older(s).Locations).To(Equal([]string{"retired"}))
}

func TestAnUnresponsiveLocationBlocksOnlyItsOwnServices(t *testing.T) {
	for name, sick := range map[string]func(*fakeBalancer){
		"although it was found": func(f *fakeBalancer) {
			f.gone = map[string]error{"slow": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}
		},
		"and cannot be found": func(f *fakeBalancer) { f.lost = map[string]error{"slow": loadbalancer.ErrUnknown} },
	} {
		t.Run(name, func(t *testing.T) {
			there := balanced("there", at("slow"), published, func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, withDigest(s, "slow"))
			})
			here := balanced("here", published, func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.OlderLocations: withDigest(s, "main"),
					servicetest.OlderAddresses: withDigest(s, "203.0.113.10"),
				}
			})
			b := newBench(t, here, there)
			b.balancer.at("main", "here-uid")["tcp-80"] = "30080 [10.0.0.1]"
			sick(b.balancer)

			_, err := b.ensure(there)
			b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
			status, err := b.ensure(here)
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(status.Ingress).To(ConsistOf(HaveField("IP", "203.0.113.10")))

			b.balancer.gone = nil
			b.balancer.lost = nil
			_, err = b.them.locations.all(t.Context())
			b.Expect(err).NotTo(HaveOccurred())
			b.now(here)
			_, err = b.ensure(here)
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(b.recordOf(here)).To(Equal(service.Record{
				Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.10")},
				Locations: []string{"main"},
			}))
			b.Expect(b.older(here)).To(BeZero(), "it is read once")
		})
	}
}

func TestAnAddressAtAnUnresponsiveLocationIsNotConsideredForged(t *testing.T) {
	s := balanced("web", published, at("slow"), func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, withDigest(s, "slow"))
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderAddresses, withDigest(s, "203.0.113.10"))
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"slow": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}

	_, err := b.ensure(s)

	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.older(s).Addresses).To(Equal([]string{"203.0.113.10"}))
}

func TestBothAddressesOfALoadBalancerAreConfirmed(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, withDigest(s, "main"))
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderAddresses, withDigest(s, "203.0.113.10", "2001:db8::10"))
	})
	b := newBench(t, s)
	b.balancer.further = []netip.Addr{netip.MustParseAddr("2001:db8::10")}
	b.balancer.at("main", "web-uid")["tcp-80"] = "30080 [10.0.0.1]"

	_, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.recordOf(s).Addresses).To(Equal(b.balancer.addresses()))
	b.Expect(b.newEvents()).To(BeEmpty())
}

// forged returns IDs of invisible locations.
func (b *bench) forged(n int) []string {
	var ids []string
	b.balancer.gone = map[string]error{}
	for i := range n {
		id := fmt.Sprint("a", i)
		ids = append(ids, id)
		b.balancer.gone[id] = loadbalancer.ErrRefused
	}
	return ids
}

func TestAnEndlessListOfLocationsIsNotReadRepeatedly(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, strings.Join(b.forged(500), ","))

	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.looks).To(BeNumerically("<", 50))
	b.Expect(len(b.recordOf(s).Locations)).To(BeNumerically("<=", 1+len(benchDefaults.Locations)+16))
	b.Expect(b.recordOf(s).Locations).To(ContainElement("main"))
	looks := b.balancer.looks

	for range 3 {
		s = b.now(s)
		_, err = b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred())
	}
	b.Expect(b.balancer.looks-looks).To(Equal(2*3), "invisible locations are not requested")

	b.clock.Step(maxRefusalBackoff)
	looks = b.balancer.looks
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.looks-looks).To(BeNumerically(">", 2), "but they are not dropped")
}

func TestASlowRemovalDoesNotBlockOtherLocations(t *testing.T) {
	moved := balanced("web", recordedAt("slow"))
	other := balanced("other")
	b := newBench(t, moved, other)
	b.balancer.at("slow", "web-uid")["tcp-80"] = "from before"
	b.balancer.hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(b.balancer.hold) })
	defer release()
	left := make(chan error, 1)
	go func() {
		_, err := b.ensure(moved)
		left <- err
	}()
	b.Eventually(func() bool { return b.them.states.get(moved.UID).provisioned }).Should(BeTrue())

	_, err := b.ensure(other)

	b.Expect(err).NotTo(HaveOccurred())
	release()
	b.Eventually(left).Should(Receive(BeNil()))
}
