// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A simulator runs for days with faulty clients, so their requests must not accumulate.

func TestRecordsOfUnhandledRequestsAreBounded(t *testing.T) {
	g := NewWithT(t)
	sim, err := New(Config{Model: Minimal()})
	g.Expect(err).NotTo(HaveOccurred())
	v := &visitor{sim: sim}
	for i := range journal.MaxOperations + 50 {
		v.call(http.MethodGet, fmt.Sprintf("/api/nothing/%d", i), "")
	}
	v.call(http.MethodGet, "/api/"+strings.Repeat("x", 1<<20), "")
	g.Expect(len(sim.Counters())).To(BeNumerically("<=", journal.MaxOperations+1))
	g.Expect(sim.Counters()).To(HaveKeyWithValue(journal.OtherOperations, BeNumerically(">", 40)))
	requests := sim.Requests()
	g.Expect(len(requests[len(requests)-1].Path)).To(BeNumerically("<", 2*journal.MaxPath))

	v.token = v.call(http.MethodPost, "/cloudapi/1.0.0/sessions/provider",
		"").Header().Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	g.Expect(sim.Counters()).To(HaveKeyWithValue(journal.OtherOperations, BeNumerically(">", 40)))
	v.call(http.MethodGet, "/api/nothing/at/all", "")
	g.Expect(len(sim.Unhandled())).To(BeNumerically("<=", journal.MaxOperations+1))
}

func TestExpiredSessionsAreDropped(t *testing.T) {
	g := NewWithT(t)
	clock := clock.NewManualClock(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
	sim, err := New(Config{Model: Minimal(), Clock: clock})
	g.Expect(err).NotTo(HaveOccurred())
	v := &visitor{sim: sim}
	for range 4 * access.SweepSessions {
		g.Expect(v.call(http.MethodPost, "/cloudapi/1.0.0/sessions/provider", "").Code).To(Equal(http.StatusOK))
		clock.Advance(time.Minute)
	}
	g.Expect(len(sim.State().Sessions)).To(BeNumerically("<", 2*access.SweepSessions))
}

func TestAFinishedTaskDoesNotRetainItsChanges(t *testing.T) {
	g := NewWithT(t)
	m := K8sTenant()
	m.Orgs[1].VDCs[0].Fleet = store.Fleet{VApps: 1, VMsPerVApp: 1, PoweredOff: true, Owner: "capvcd"}
	sim, err := New(Config{Model: m})
	g.Expect(err).NotTo(HaveOccurred())
	v := &visitor{sim: sim}
	v.token = v.call(http.MethodPost, "/cloudapi/1.0.0/sessions/provider",
		"").Header().Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	secret := `<Vm xmlns:vmw="x"><VirtualHardwareSection><vmw:ExtraConfig vmw:key="guestinfo.userdata" vmw:value="secret"/></VirtualHardwareSection></Vm>`
	g.Expect(v.call(http.MethodPost, "/api/vApp/vm-"+sim.State().VMs[0].ID+"/action/reconfigureVm",
		secret).Code).To(Equal(http.StatusAccepted))
	g.Expect(sim.State().VMs[0].ExtraConfig).To(HaveKeyWithValue("guestinfo.userdata", "secret"))
	tasks := sim.State().Tasks
	g.Expect(tasks).To(HaveLen(1))
	g.Expect(tasks[0].Work.Change).To(BeNil())
	g.Expect(tasks[0].Work.VM).To(Equal(sim.State().VMs[0].ID))
}
