// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// byClusterID binds values with the id of the cluster as the key, as older builds did and as everyone can who has seen
// an event with that id.
func byClusterID(s *corev1.Service, values ...string) string {
	older := benchDefaults
	older.Key = service.NewKey([]byte("c1"))
	return older.Bind(s, values)
}

// without is a value without a digest, as builds before those wrote it.
func without(_ *corev1.Service, values ...string) string { return values[0] }

// storedNow returns what is stored on a Service, and shows it to the cache.
func (b *bench) storedNow(s *corev1.Service) service.Stored { return benchDefaults.Stored(b.now(s)) }

// now returns a Service as the API server has it, and shows it to the cache.
func (b *bench) now(s *corev1.Service) *corev1.Service {
	now, err := b.client.CoreV1().Services(s.Namespace).Get(context.Background(), s.Name, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	b.services.add(now)
	return now
}

func TestWhatAnOlderBuildHasStoredHoldsAsFarAsTheCloudConfirmsIt(t *testing.T) {
	address := netip.MustParseAddr("203.0.113.10")
	for name, bind := range map[string]func(*corev1.Service, ...string) string{
		"with a digest by the cluster's id": byClusterID,
		"without a digest":                  without,
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published, func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.Standing: bind(s, "retired"),
					servicetest.Intent:   bind(s, address.String()),
				}
			})
			b := newBench(t, s)
			b.balancer.at("retired", "web-uid")["tcp-80"] = "30080 [10.0.0.1]" // not in the configuration any more

			_, err := b.ensure(s)

			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(b.balancer.things["retired/web-uid"]).To(BeEmpty(), "it was found, and left")
			b.Expect(b.storedNow(s)).To(Equal(service.Stored{
				Intent:   []netip.Addr{address},
				Standing: []string{"main"},
			}))
			b.Expect(b.told()).To(BeEmpty())
		})
	}
}

func TestAForgedAnnotationIsNeitherFollowedNorKept(t *testing.T) {
	for name, bind := range map[string]func(*corev1.Service, ...string) string{
		"with a digest by the cluster's id": byClusterID,
		"without a digest":                  without,
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.Standing: bind(s, "invisible"),
					servicetest.Intent:   bind(s, "203.0.113.99"),
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
			b.Expect(b.storedNow(s)).To(Equal(service.Stored{
				Intent:   []netip.Addr{netip.MustParseAddr("203.0.113.10")},
				Standing: []string{"main"},
			}))
			b.Expect(b.told()).To(ConsistOf(ContainSubstring("intent, or a part"), ContainSubstring("standing, or a part")))
		})
	}
}

func TestWhatMayNotBeSeenIsNoProofOnceAnAddressWasPublished(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		s.Annotations = map[string]string{servicetest.Standing: byClusterID(s, "retired")}
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"retired": loadbalancer.ErrRefused}

	_, _, err := b.them.GetLoadBalancer(t.Context(), "", s)
	b.Expect(err).To(MatchError(loadbalancer.ErrRefused), "the finalizer stays")
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).NotTo(Succeed())
}

func TestNothingIsConfirmedDuringAnOutage(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		s.Annotations = map[string]string{servicetest.Standing: byClusterID(s, "retired")}
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"retired": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}

	_, err := b.ensure(s)
	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.storedNow(s).Unproved.Standing).To(Equal([]string{"retired"}))
}

func TestALocationThatDoesNotAnswerHoldsUpOnlyItsOwnServices(t *testing.T) {
	for name, sick := range map[string]func(*fakeBalancer){
		"though it was found": func(f *fakeBalancer) {
			f.gone = map[string]error{"slow": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}
		},
		"and cannot be found": func(f *fakeBalancer) { f.lost = map[string]error{"slow": loadbalancer.ErrUnknown} },
	} {
		t.Run(name, func(t *testing.T) {
			there := balanced("there", at("slow"), published, func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Standing, byClusterID(s, "slow"))
			})
			here := balanced("here", published, func(s *corev1.Service) {
				s.Annotations = map[string]string{
					servicetest.Standing: byClusterID(s, "main"),
					servicetest.Intent:   byClusterID(s, "203.0.113.10"),
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
			b.storedNow(here)
			_, err = b.ensure(here)
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(b.storedNow(here)).To(Equal(service.Stored{
				Intent:   []netip.Addr{netip.MustParseAddr("203.0.113.10")},
				Standing: []string{"main"},
			}))
		})
	}
}

func TestAnAddressAtALocationThatDoesNotAnswerIsNotTakenForAForgery(t *testing.T) {
	s := balanced("web", published, at("slow"), func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Standing, byClusterID(s, "slow"))
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Intent, byClusterID(s, "203.0.113.10"))
	})
	b := newBench(t, s)
	b.balancer.gone = map[string]error{"slow": fmt.Errorf("%w: no answer", loadbalancer.ErrUnknown)}

	_, err := b.ensure(s)

	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.storedNow(s).Unproved.Intent).To(Equal([]string{"203.0.113.10"}))
}

func TestBothAddressesOfALoadBalancerAreConfirmed(t *testing.T) {
	s := balanced("web", published, func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Standing, byClusterID(s, "main"))
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Intent, byClusterID(s, "203.0.113.10", "2001:db8::10"))
	})
	b := newBench(t, s)
	b.balancer.further = []netip.Addr{netip.MustParseAddr("2001:db8::10")}
	b.balancer.at("main", "web-uid")["tcp-80"] = "30080 [10.0.0.1]"

	_, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.storedNow(s).Intent).To(Equal(b.balancer.addresses()))
	b.Expect(b.told()).To(BeEmpty())
}

func TestTheKeyIsMadeOnce(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{
		"there is none": nil,
		"the manifests brought it empty": {ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system",
			Name:      KeySecret,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if secret != nil {
				b.Expect(b.client.Tracker().Add(secret)).To(Succeed())
			}
			keys := [2]*service.Key{{}, {}}
			for _, key := range keys {
				loader := &keyLoader{key: key, client: b.client, namespace: "kube-system"}
				b.Expect(loader.load(t.Context())).To(Succeed())
			}

			s := balanced("web")
			one := benchDefaults
			two := benchDefaults
			one.Key = keys[0]
			two.Key = keys[1]
			b.Expect(one.Bind(s, []string{"x"})).To(Equal(two.Bind(s, []string{"x"})))
			b.Expect(one.Bind(s, []string{"x"})).NotTo(Equal(byClusterID(s, "x")))
		})
	}
}

// withoutRole is an API server that refuses a verb on Secrets.
func (b *bench) withoutRole(verb string) {
	b.client.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), KeySecret, errors.New("no role"))
	})
}

func TestWithoutTheKeyNothingIsTouched(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	b.withoutRole("get")
	b.them.key.key = &service.Key{}

	_, err := b.ensure(s)
	b.Expect(err).To(MatchError(And(ContainSubstring(KeySecret), ContainSubstring("kubectl apply -f cloud-ccm.yaml"))))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(ContainSubstring(KeySecret)))
	b.Expect(b.balancer.looks).To(BeZero())
}

func TestARuleThatTheRoleLacksIsSaidOnThePod(t *testing.T) {
	for _, verb := range []string{"get", "update"} {
		t.Run(verb, func(t *testing.T) {
			b := newBench(t)
			b.Expect(b.client.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system",
				Name:      KeySecret,
			}})).To(Succeed())
			b.withoutRole(verb)
			b.them.key.key = &service.Key{}

			for range 2 {
				b.Expect(b.them.key.load(t.Context())).To(MatchError(ContainSubstring("get, update")))
			}
			b.Expect(b.told()).To(ConsistOf(And(HavePrefix("Warning ManifestOutdated"), ContainSubstring(KeySecret),
				ContainSubstring("kubectl apply -f cloud-ccm.yaml"))), "once, without a Service")
		})
	}
}

// forged are ids of locations that may not be seen.
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

func TestAListOfLocationsWithoutEndIsNotAskedForAgainAndAgain(t *testing.T) {
	s := balanced("web", published)
	b := newBench(t, s)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Standing, strings.Join(b.forged(500), ","))

	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.looks).To(BeNumerically("<", 50))
	b.Expect(len(b.storedNow(s).Standing)).To(BeNumerically("<=", 1+len(benchDefaults.Locations)+16))
	b.Expect(b.storedNow(s).Standing).To(ContainElement("main"))
	looks := b.balancer.looks

	for range 3 {
		s = b.now(s)
		_, err = b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred())
	}
	b.Expect(b.balancer.looks-looks).To(Equal(2*3), "those that cannot be seen are not asked for")

	b.clock.Step(maxRefusalBackoff)
	looks = b.balancer.looks
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.looks-looks).To(BeNumerically(">", 2), "but they are not forgotten")
}

func TestALocationThatIsLeftSlowlyHoldsUpNoOthers(t *testing.T) {
	moved := balanced("web", standingAt("slow"))
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
	b.Eventually(func() bool { return b.them.states.get(moved.UID).made }).Should(BeTrue())

	_, err := b.ensure(other)

	b.Expect(err).NotTo(HaveOccurred())
	release()
	b.Eventually(left).Should(Receive(BeNil()))
}
