package integration

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const crashes = 20

// TestKilledAtAnyMoment kills the manager at random moments of a create and of a delete. CRASH_SEED repeats a run.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("CRASH_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	t.Logf("CRASH_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	s := newSite(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Profile{Name: "brisk", Scale: 0.03} })
	c := s.cluster("crash")
	s.ready(c)

	for i := range crashes {
		name := fmt.Sprintf("crash-%d", i)
		s.crashWhileCreating(name, random)
		s.crashWhileDeleting(name, random)
	}

	s.deleteCluster("crash")
	s.empty()
}

// crashWhileCreating kills the manager somewhere between the creation of a machine and its being ready.
func (s *site) crashWhileCreating(name string, random *rand.Rand) {
	s.t.Helper()
	since := len(s.Requests())
	m := s.machine("crash", name)
	s.crashAfter(time.Duration(random.Int64N(int64(3 * time.Second))))
	s.ready(m)
	vms := s.State().VMs
	s.g.Expect(vms).To(HaveLen(1), "VMs after the crash while creating %s", name)
	s.g.Expect(m.Spec.ProviderID).To(HaveSuffix(vms[0].ID))
	s.g.Expect(s.created(since)).To(Equal(1), "%s was made more than once", name)
}

// crashWhileDeleting kills the manager somewhere between the deletion of a machine and its end.
func (s *site) crashWhileDeleting(name string, random *rand.Rand) {
	s.t.Helper()
	m := &infrav1.VCDMachine{ObjectMeta: s.meta(name)}
	machine := &clusterv1.Machine{ObjectMeta: s.meta(name)}
	s.g.Expect(house.client.Delete(s.t.Context(), machine)).To(Succeed())
	s.crashAfter(time.Duration(random.Int64N(int64(2 * time.Second))))
	for _, obj := range []client.Object{machine, m} {
		s.g.Eventually(func() error { return s.get(obj) }, patience, "50ms").ShouldNot(Succeed())
	}
	s.g.Expect(s.State().VMs).To(BeEmpty(), "VMs after the crash while deleting %s", name)
}

// crashAfter kills the manager in a while and starts it again.
func (s *site) crashAfter(d time.Duration) {
	s.t.Helper()
	<-time.After(d)
	s.g.Expect(house.Manager.Kill()).To(Succeed())
	s.g.Expect(house.Manager.Start(s.t.Context())).To(Succeed())
}

// created counts the requests since index that VCD accepted and that make VMs.
func (s *site) created(since int) int {
	n := 0
	for _, r := range s.Requests()[since:] {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Operation, "omposeVApp") && r.Status < 300 {
			n++
		}
	}
	return n
}
