// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// longForms makes each fault at each call happen three times instead of once.
var longForms = flag.Bool("ccm-long", false, "run the long forms of the tests of the cloud controller manager")

// TestEveryFaultAtEveryCall makes each call in the lives of Services fail in each way at least once. Load balancers
// must still become correct, without duplicates, and leave nothing.
func TestEveryFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, kinds := range allFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "faults-"+name,
				fixtureOption{patience: 5 * time.Minute, args: []string{quickQPS, quickBurst}})
			everyFault(t, w, kinds)
		})
	}
}

func everyFault(t *testing.T, w *fixture, kinds []fault) {
	t.Helper()
	g := NewWithT(t)
	calls := map[string][]string{}
	writes := map[string][]string{}
	lives(t, w, 1, func(flow string, _ *crowd, do func()) {
		w.cloud.forget()
		do()
		calls[flow] = distinct(describe(w.cloud.requests(), reading, writing, waiting))
		writes[flow] = distinct(describe(w.cloud.requests(), writing))
	})
	times := 1
	if *longForms {
		times = 3
	}

	lives(t, w, 3, func(flow string, all *crowd, do func()) {
		g.Expect(calls[flow]).NotTo(BeEmpty())
		for _, kind := range kinds {
			operations := calls[flow]
			if kind == taskFailed {
				operations = []string{"create*", "update*", "delete*"} // of tasks
			}
			if kind == droppedBefore {
				operations = writes[flow] // A read whose response is lost equals a read that was never sent.
			}
			for _, operation := range operations {
				w.vcd().faults().add(kind, operation, times)
			}
		}
		ordered := len(w.vcd().faults().left())
		began := time.Now()
		stop := all.hurry(t)
		do()
		stop()
		happened := ordered - len(w.vcd().faults().left())
		t.Logf("%s: %d of %d faults at %d calls happened in %s", flow, happened, ordered, len(calls[flow]),
			time.Since(began).Round(time.Second))
		g.Expect(happened).To(BeNumerically(">=", len(calls[flow])), "there should be a fault at each call")
		w.vcd().faults().clear()
	})
}

func distinct(all []string) []string {
	set := map[string]bool{}
	for _, one := range all {
		set[one] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// A crowd holds the Services that exist at the same time.
type crowd struct {
	mu  sync.Mutex
	all []*service
}

func (c *crowd) add(s *service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, s)
}

func (c *crowd) members() []*service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// hurry makes Services reconcile repeatedly, as after edits by users, until the returned function is called. Kubernetes
// increases its retry delay up to five minutes, which these tests do not check.
func (c *crowd) hurry(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, s := range c.members() {
				edit := client.RawPatch(types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{"ccm.test/edit":"%d"}}}`, n))
				if err := s.client.Patch(ctx, &corev1.Service{ObjectMeta: metaOf(s)},
					edit); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					t.Logf("editing Service %s: %s", s.key, err) // The next edit follows soon.
				}
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// lives runs the lives of n Services for each way in parallel. around is called with each flow.
func lives(t *testing.T, w *fixture, n int, around func(flow string, all *crowd, do func())) {
	t.Helper()
	g := NewWithT(t)
	c := &crowd{}
	around("create", c, func() {
		for range n {
			for _, way := range ways() {
				c.add(w.service(t, "life", by(way), ports(port("http", 80), port("https", 443))))
			}
		}
		for _, s := range c.members() {
			s.served()
		}
	})
	around("change", c, func() {
		for _, s := range c.members() {
			s.change(ports(port("http", 80), port("more", 8443)),
				func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
		}
		for _, s := range c.members() {
			s.served()
		}
	})
	around("delete", c, func() {
		for _, s := range c.members() {
			g.Expect(s.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metaOf(s)})).To(Succeed())
		}
		for _, s := range c.members() {
			s.delete()
		}
	})
	g.Eventually(func() []string { return w.cloud.left("") }, patience, poll).Should(BeEmpty())
}
