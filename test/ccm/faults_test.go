package ccm

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// longForms runs every fault at every call three times over instead of once.
var longForms = flag.Bool("ccm-long", false, "run the long forms of the tests of the cloud controller manager")

// TestEveryFaultAtEveryCall lets every call that the lives of Services take fail in every way, once at least. Load balancers end right all
// the same, with no second object of anything, and nothing is left of them.
func TestEveryFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "faults", worldOption{patience: 5 * time.Minute}) // Faults one after the other are outages, in which VCD is asked less and less.
	g := NewWithT(t)
	calls, writes := map[string][]string{}, map[string][]string{}
	lives(t, w, 1, func(flow string, do func()) {
		w.cloud.forget()
		do()
		calls[flow] = distinct(told(w.cloud.requests(), reading, writing, waiting))
		writes[flow] = distinct(told(w.cloud.requests(), writing))
	})
	times := 1
	if *longForms {
		times = 3
	}

	lives(t, w, 4, func(flow string, do func()) {
		g.Expect(calls[flow]).NotTo(BeEmpty())
		kinds := allFaults()
		if flow == "delete" && !*longForms {
			kinds = []fault{droppedAfter, taskFailed} // The controller tries deletions again ever later.
		}
		for _, kind := range kinds {
			operations := calls[flow]
			if kind == taskFailed {
				operations = []string{"create*", "update*", "delete*"} // of tasks
			}
			if kind == droppedBefore {
				operations = writes[flow] // A read whose answer is lost is one that was never made.
			}
			for _, operation := range operations {
				w.cloud.faults().add(kind, operation, times)
			}
		}
		all := len(w.cloud.faults().left())
		do()
		happened := all - len(w.cloud.faults().left())
		t.Logf("%s: %d of %d faults at %d calls happened", flow, happened, all, len(calls[flow]))
		g.Expect(happened).To(BeNumerically(">=", len(calls[flow])), "there should be a fault at each call")
		w.cloud.faults().clear()
	})
}

func distinct(all []string) []string {
	set := map[string]bool{}
	for _, one := range all {
		set[one] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// lives goes through the lives of n Services by each way at the same time; around is called with each flow.
func lives(t *testing.T, w *world, n int, around func(flow string, do func())) {
	t.Helper()
	g := NewWithT(t)
	var all []*service
	around("create", func() {
		for range n {
			for _, way := range ways() {
				all = append(all, w.service(t, "life", by(way), ports(port("http", 80), port("https", 443))))
			}
		}
		for _, s := range all {
			s.served()
		}
	})
	around("change", func() {
		for _, s := range all {
			s.change(ports(port("http", 80), port("more", 8443)), func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
		}
		for _, s := range all {
			s.served()
		}
	})
	around("delete", func() {
		for _, s := range all {
			g.Expect(s.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metaOf(s)})).To(Succeed())
		}
		for _, s := range all {
			s.delete()
		}
	})
	g.Eventually(func() []string { return w.cloud.left("") }, patience, poll).Should(BeEmpty())
}
