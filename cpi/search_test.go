// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A fakeSearcher finds the objects of a fakeBalancer at any location.
type fakeSearcher struct {
	balancer *fakeBalancer
	err      error
}

func (f *fakeSearcher) Search(_ context.Context, owner loadbalancer.Owner, _ bool) ([]string, error) {
	f.balancer.mu.Lock()
	defer f.balancer.mu.Unlock()
	var out []string
	for _, place := range []string{"main", "slow", "unnamed"} {
		if len(f.balancer.at(place, owner.UID)) > 0 {
			out = append(out, place)
		}
	}
	return out, f.err
}

// searchable returns a bench whose cloud can be searched.
func searchable(t *testing.T, services ...*corev1.Service) (*bench, *fakeSearcher) {
	t.Helper()
	b := newBench(t, services...)
	searcher := &fakeSearcher{balancer: b.balancer}
	b.configure(func(o *LoadBalancerOptions) { o.Searcher = searcher })
	return b, searcher
}

// notYet returns the error of the default location before there are nodes.
func notYet() map[string]error {
	return map[string]error{"": fmt.Errorf("no machine is seen yet; set network: %w", loadbalancer.ErrBusy)}
}

func TestAnUnusedServiceIsDeletedWithoutAKnownLocation(t *testing.T) {
	s := balanced("web")
	b, _ := searchable(t, s)
	b.balancer.lost = notYet()

	_, exists, err := b.them.GetLoadBalancer(t.Context(), "", s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeFalse())
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
	b.Expect(b.newEvents()).To(BeEmpty())
}

func TestAServiceIsKeptWhileTheSearchFails(t *testing.T) {
	s := balanced("web")
	b, searcher := searchable(t, s)
	searcher.err = loadbalancer.ErrUnknown

	_, _, err := b.them.GetLoadBalancer(t.Context(), "", s)

	b.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(MatchError(loadbalancer.ErrUnknown))
}

func TestLoadBalancersAtUnrecordedLocationsAreRemoved(t *testing.T) {
	for name, end := range map[string]func(*bench, *corev1.Service) error{
		"with its Service": func(b *bench, s *corev1.Service) error {
			return b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)
		},
		"once the load balancer exists elsewhere": func(b *bench, s *corev1.Service) error {
			if _, err := b.ensure(s); err != nil {
				return err
			}
			b.Expect(b.balancer.at("main", "web-uid")).To(HaveLen(2))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web", published) // by a predecessor, which has stored nothing
			b, _ := searchable(t, s)
			b.balancer.at("unnamed", "web-uid")["tcp-80"] = "from before"

			b.Expect(end(b, s)).To(Succeed())

			b.Expect(b.balancer.at("unnamed", "web-uid")).To(BeEmpty())
		})
	}
}

func TestAMissingLocationIsSearchedDuringDeletion(t *testing.T) {
	s := balanced("web", recordedAt(unresolvedPrefix))
	b, _ := searchable(t, s)
	b.balancer.lost = notYet()
	b.balancer.at("main", "web-uid")["tcp-80"] = "from before"
	now := metav1.NewTime(b.clock.Now())
	s.DeletionTimestamp = &now

	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())

	b.Expect(b.balancer.left()).To(BeZero())
}

func TestAnUnknownLocationIsReportedWithARemedy(t *testing.T) {
	s := balanced("web")
	b, _ := searchable(t, s)
	b.balancer.lost = notYet()

	_, err := b.ensure(s)

	b.mustRetry(err, "no machine is seen yet; set network")
}
