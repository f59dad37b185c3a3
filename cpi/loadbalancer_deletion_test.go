// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestDeletionWaitsForABusyLocation(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	for _, tt := range []struct {
		name  string
		tries int32
		end   types.GomegaMatcher
	}{
		{"that stays busy", removalRounds + 1, MatchError(loadbalancer.ErrBusy)},
		{"that is soon free again", 3, BeNil()},
	} {
		var tried atomic.Int32
		b.balancer.fail = func(fakeStep) error {
			if tried.Add(1) < tt.tries {
				return loadbalancer.ErrBusy
			}
			return nil
		}
		deleted := make(chan error, 1)
		go func() { deleted <- b.them.EnsureLoadBalancerDeleted(context.Background(), "", s) }()
		for n := range min(tt.tries, removalRounds) - 1 {
			b.Eventually(tried.Load).Should(Equal(n+1), tt.name)
			b.Eventually(b.clock.HasWaiters).Should(BeTrue(), tt.name)
			b.clock.Step(2 * soon)
		}
		b.Eventually(deleted).Should(Receive(tt.end), tt.name)
	}
	b.Expect(b.balancer.left()).To(BeZero())
}

func TestNothingStoredOutlivesALoadBalancer(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.recordOf(s)).NotTo(BeZero())
	plain := b.now(s).DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	b.services.add(plain)
	refused := true
	b.client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("etcd has no leader")
	})
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", plain)).NotTo(Succeed())
	refused = false

	_, exists, err := b.them.GetLoadBalancer(t.Context(), "", plain)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeTrue(), "otherwise Kubernetes does not retry")
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", plain)).To(Succeed())

	b.Expect(b.recordOf(s)).To(BeZero(), "another Service may have the address by the time it is requested again")
	b.services.add(b.now(s))
	_, exists, err = b.them.GetLoadBalancer(t.Context(), "", plain)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeFalse())
}

func TestNothingIsWrittenToADeletingService(t *testing.T) {
	going := balanced("web", func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	gone := balanced("gone")
	b := newBench(t, going)
	b.Expect(b.them.store.load(t.Context())).To(Succeed())
	b.client.ClearActions()

	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", going)).To(Succeed())
	b.Expect(b.them.EnsureLoadBalancerDeleted(t.Context(), "", gone)).To(Succeed())

	b.Expect(b.client.Actions()).To(BeEmpty())
}
