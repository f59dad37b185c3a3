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

// longForms enables the long forms of tests. For example, each fault happens three times at each call instead of once.
var longForms = flag.Bool("ccm-long", false, "run the long forms of the tests of the cloud controller manager")

// TestEveryFaultAtEveryCall injects each fault at least once into each call in the lifecycle of Services. Load
// balancers must still become correct, without duplicates, and leave nothing behind.
func TestEveryFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, kinds := range allFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "faults-"+name,
				fixtureOption{timeout: 5 * time.Minute, args: []string{quickQPS, quickBurst}})
			everyFault(t, w, kinds)
		})
	}
}

func everyFault(t *testing.T, w *fixture, kinds []fault) {
	t.Helper()
	g := NewWithT(t)
	calls := map[string][]string{}
	writes := map[string][]string{}
	runLifecycles(t, w, 1, func(flow string, _ *serviceGroup, do func()) {
		w.cloud.forget()
		do()
		calls[flow] = distinct(describe(w.cloud.requests(), reading, writing, waiting))
		writes[flow] = distinct(describe(w.cloud.requests(), writing))
	})
	times := 1
	if *longForms {
		times = 3
	}

	runLifecycles(t, w, 3, func(flow string, all *serviceGroup, do func()) {
		g.Expect(calls[flow]).NotTo(BeEmpty())
		for _, kind := range kinds {
			operations := calls[flow]
			if kind == taskFailed {
				operations = []string{"create*", "update*", "delete*"} // prefixes of task names
			}
			if kind == droppedBefore {
				operations = writes[flow] // A lost read equals a read whose response is lost.
			}
			for _, operation := range operations {
				w.vcd().faults().add(kind, operation, times)
			}
		}
		injected := len(w.vcd().faults().pending())
		began := time.Now()
		stop := all.retrigger(t)
		do()
		stop()
		happened := injected - len(w.vcd().faults().pending())
		t.Logf("%s: %d of %d faults at %d calls happened in %s", flow, happened, injected, len(calls[flow]),
			time.Since(began).Round(time.Second))
		g.Expect(happened).To(BeNumerically(">=", len(calls[flow])), "each call should have had a fault")
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

// A serviceGroup holds Services that exist at the same time. It is safe for concurrent use.
type serviceGroup struct {
	mu  sync.Mutex
	all []*service
}

func (c *serviceGroup) add(s *service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, s)
}

func (c *serviceGroup) members() []*service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// retrigger edits the Services every second, so that they are reconciled, until stop is called. Otherwise the tests
// would wait for the retry delay of Kubernetes, which increases to five minutes and which they do not check.
func (c *serviceGroup) retrigger(t *testing.T) (stop func()) {
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
					t.Logf("editing Service %s: %s", s.key, err) // It is edited again within a second.
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

// runLifecycles runs the lifecycles of n Services for each gateway in parallel. It calls around with each flow.
func runLifecycles(t *testing.T, w *fixture, n int, around func(flow string, all *serviceGroup, do func())) {
	t.Helper()
	g := NewWithT(t)
	c := &serviceGroup{}
	around("create", c, func() {
		for range n {
			for _, gateway := range gatewayNames() {
				c.add(w.service(t, "life", by(gateway), ports(port("http", 80), port("https", 443))))
			}
		}
		for _, s := range c.members() {
			s.awaitServed()
		}
	})
	around("change", c, func() {
		for _, s := range c.members() {
			s.change(ports(port("http", 80), port("more", 8443)),
				func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
		}
		for _, s := range c.members() {
			s.awaitServed()
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
	g.Eventually(func() []string { return w.cloud.leftovers("") }, timeout, poll).Should(BeEmpty())
}
