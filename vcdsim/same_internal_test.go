// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/faults"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// answers returns the responses of a simulator to the same requests, word for word: bodies and headers, except
// durations.
func answers(g *WithT, seed int64) []string {
	clock := clock.NewManualClock(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
	m := K8sTenant()
	m.Orgs[1].VDCs[0].Fleet = store.Fleet{VApps: 2, VMsPerVApp: 3, Owner: "capvcd"}
	sim, err := New(Config{Model: m, Seed: seed, Clock: clock, Profile: cloud.Recorded})
	g.Expect(err).NotTo(HaveOccurred())
	sim.Faults().Add(faults.Fault{Probability: 0.2, Operation: "GET /api/task", Status: 503})
	v := &visitor{sim: sim}
	var out []string
	call := func(method, path, body string) http.Header {
		w := v.call(method, path, body)
		w.Header().Del("X-Vmware-Vcloud-Request-Execution-Time")
		out = append(out, fmt.Sprint(method, " ", path, " ", w.Code, w.Header(), w.Body))
		return w.Header()
	}
	v.token = call(http.MethodPost, "/cloudapi/1.0.0/sessions/provider", "").Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	vdc := sim.State().Model.Orgs[1].VDCs[0]
	var tasks []string
	write := func(path, body string) {
		if task := call(http.MethodPost, path, body).Get("Location"); task != "" {
			tasks = append(tasks, strings.TrimPrefix(task, "https://vcd"))
		}
	}
	for i := range 6 {
		write("/api/vdc/"+vdc.ID+"/action/composeVApp", fmt.Sprintf(`<ComposeVAppParams name="v%d"/>`, i))
		write("/api/vdc/"+vdc.ID+"/disk",
			fmt.Sprintf(`<DiskCreateParams><Disk name="d%d" sizeMb="10"/></DiskCreateParams>`, i))
		write("/cloudapi/1.0.0/loadBalancer/pools",
			fmt.Sprintf(`{"name":"p%d","gatewayRef":{"id":"urn:vcloud:gateway:%s"}}`, i, vdc.EdgeGateways[0].ID))
		clock.Advance(7 * time.Second)
		for _, t := range tasks {
			call(http.MethodGet, t, "")
		}
	}
	for _, vm := range sim.State().VMs {
		write("/api/vApp/vm-"+vm.ID+"/action/undeploy", "")
	}
	clock.Advance(time.Hour)
	for _, path := range []string{
		"/api/versions",
		"/api/org",
		"/api/vdc/" + vdc.ID,
		"/cloudapi/1.0.0/edgeGateways",
		"/cloudapi/1.0.0/roles",
		"/cloudapi/1.0.0/applicationPortProfiles",
		"/cloudapi/1.0.0/orgVdcNetworks",
		"/api/tasksList/" + sim.State().Model.Orgs[1].ID,
		"/api/vApp/vapp-" + sim.State().VApps[0].ID,
	} {
		call(http.MethodGet, path, "")
	}
	return out
}

func TestResponsesAreDeterministicForASeed(t *testing.T) {
	g := NewWithT(t)
	first := answers(g, 7)
	for range 3 {
		again := answers(g, 7)
		g.Expect(again).To(HaveLen(len(first)))
		for i := range first {
			g.Expect(again[i]).To(Equal(first[i]))
		}
	}
	g.Expect(strings.Join(first, "")).To(ContainSubstring(" 503"), "including random values")
	g.Expect(answers(g, 8)).NotTo(Equal(first))
}
