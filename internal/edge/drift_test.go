// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	poolsDocument = "1.0.0/loadBalancer/pools"
	setsDocument  = "1.0.0/firewallGroups"
)

// newTimedFixture returns a fixture with a manual clock.
func newTimedFixture(t *testing.T) (*fixture, *testClock) {
	t.Helper()
	w := newFixture(t, vcdsim.K8sTenant())
	now := newTestClock()
	w.opts = edge.Options{Clock: now}
	w.restart()
	return w, now
}

// documents returns the IDs of the objects at a path in the simulator.
func (w *fixture) documents(path string) []string {
	var ids []string
	for _, doc := range w.sim.State().Documents {
		if doc.Path == path {
			ids = append(ids, doc.ID)
		}
	}
	return ids
}

// editManually makes a manual change.
func (w *fixture) editManually(id string, edit func(body map[string]any)) {
	w.t.Helper()
	w.sim.Edit(func(e *vcdsim.Editor) { w.Expect(e.Document(id, edit)).To(BeTrue()) })
}

// targetsOf returns the targets of a pool or IP set: its group, addresses, port and monitors.
func (w *fixture) targetsOf(id string) string {
	w.t.Helper()
	var body struct {
		Group     struct{ Name string } `json:"memberGroupRef"`
		Port      int                   `json:"defaultPort"`
		Members   []struct{ IPAddress string }
		Addresses []string                `json:"ipAddresses"`
		Monitors  []struct{ Type string } `json:"healthMonitors"`
	}
	for _, doc := range w.sim.State().Documents {
		if doc.ID == id {
			w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
		}
	}
	return fmt.Sprintf("%+v", body)
}

func TestDriftHintedAtByListsIsRepairedAtOnce(t *testing.T) {
	foreign := []any{map[string]any{"ipAddress": "10.9.9.9", "port": 1.0, "enabled": true, "ratio": 1.0}}
	tests := []struct {
		name    string
		path    string
		without bool // the right to create IP sets
		edit    func(body map[string]any)
	}{
		{
			name: "members instead of the IP set",
			path: poolsDocument,
			edit: func(body map[string]any) {
				body["memberGroupRef"] = nil
				body["members"] = foreign
			},
		},
		{
			name: "an additional address in the IP set",
			path: setsDocument,
			edit: func(body map[string]any) {
				body["ipAddresses"] = append(body["ipAddresses"].([]any), "10.9.9.9")
			},
		},
		{name: "no monitors", path: poolsDocument, edit: func(body map[string]any) { body["healthMonitors"] = []any{} }},
		{
			name:    "one member fewer",
			path:    poolsDocument,
			without: true,
			edit: func(body map[string]any) {
				body["members"] = body["members"].([]any)[:1]
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, now := newTimedFixture(t)
			if tt.without {
				w.sim.Faults().Add(vcdsim.Fault{
					Status:    http.StatusForbidden,
					Operation: "POST /cloudapi/1.0.0/firewallGroups",
				})
			}
			balancers := []lb.Desired{
				desired(service("c1", "a"), 80),
				desired(service("c1", "b"), 80, 443),
				desired(service("c1", "c"), 80),
			}
			for i := range balancers {
				w.converge(&balancers[i])
			}
			now.Advance(31 * time.Second) // before any pool is due
			w.converge(&balancers[0])
			id := w.documents(tt.path)[0]
			before := w.targetsOf(id)
			w.editManually(id, tt.edit)
			w.Expect(w.targetsOf(id)).NotTo(Equal(before))
			look := func() (full, writes int) {
				now.Advance(31 * time.Second)
				w.calls()
				for i := range balancers {
					w.converge(&balancers[i])
				}
				counted := w.sim.Counters()
				full = counted[rolling] + counted["GET /cloudapi/1.0.0/firewallGroups"]
				_, writes, _ = w.calls()
				return full, writes
			}

			full, writes := look()
			w.Expect(w.targetsOf(id)).To(Equal(before))
			w.Expect(writes).To(Equal(1))
			w.Expect(full).To(BeNumerically("<=", 4), "a read, a change, and a portion")

			full, writes = look()
			w.Expect(writes).To(BeZero())
			w.Expect(full).To(BeNumerically("<=", 1), "the portions")
		})
	}
}

// TestAPoolWithAnotherMemberGroup covers a change that lists only show as another number of members, which the group
// may have caused. The pool is read first.
func TestAPoolWithAnotherMemberGroup(t *testing.T) {
	w, now := newTimedFixture(t)
	balancers := make([]lb.Desired, 12)
	for i := range balancers {
		balancers[i] = desired(service("c1", fmt.Sprint("web-", i)), 80)
		w.converge(&balancers[i])
	}
	minute := func() {
		now.Advance(61 * time.Second)
		for i := range balancers {
			w.converge(&balancers[i])
		}
	}
	minute()
	org := w.sim.State().Model.Orgs[1].ID
	var other string
	w.sim.Edit(func(e *vcdsim.Editor) {
		other = e.AddDocument(setsDocument, "firewallGroup", org, w.gateway, map[string]any{
			"name":        "theirs",
			"typeValue":   "IP_SET",
			"ipAddresses": []any{"10.9.9.7", "10.9.9.8", "10.9.9.9"},
		})
	})
	pools := w.documents(poolsDocument)
	for _, id := range pools[8:11] {
		w.editManually(id, func(body map[string]any) {
			body["memberGroupRef"] = map[string]any{
				"id":   other,
				"name": "theirs",
			}
		})
	}

	for range 3 { // one each minute
		minute()
	}

	for _, id := range pools {
		w.Expect(w.targetsOf(id)).NotTo(ContainSubstring("theirs"))
	}
}

// TestAFewPoolsAreReadWithinMinutes covers changes that lists do not show.
func TestAFewPoolsAreReadWithinMinutes(t *testing.T) {
	w, now := newTimedFixture(t)
	balancers := make([]lb.Desired, 9)
	for i := range balancers {
		balancers[i] = desired(service("c1", fmt.Sprint("web-", i)), 80)
		w.converge(&balancers[i])
	}
	for _, id := range w.documents(poolsDocument) {
		w.editManually(id, func(body map[string]any) { body["defaultPort"] = 1.0 })
	}
	w.calls()

	for range 11 { // counting starts with the first round; then nine pools and a set
		now.Advance(61 * time.Second)
		for i := range balancers {
			w.converge(&balancers[i])
		}
	}

	for _, id := range w.documents(poolsDocument) {
		w.Expect(w.targetsOf(id)).To(ContainSubstring("Port:30080"))
	}
	counted := w.sim.Counters()
	w.Expect(counted[rolling]+counted["GET /cloudapi/1.0.0/firewallGroups"]).To(BeNumerically("<=", 11+9),
		"one full read each minute, and the reads of a change")
}

func TestAFruitlessFullReadIsNotRepeatedForTheSameHint(t *testing.T) {
	w, now := newTimedFixture(t)
	d := desired(service("c1", "web"), 80)
	w.converge(&d)
	observe := func() {
		now.Advance(31 * time.Second)
		_, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner, Facts: lb.FullPools})
		w.Expect(err).NotTo(HaveOccurred())
	}
	observe()
	w.calls()
	w.opts.RollEvery = time.Hour

	for range 10 {
		observe()
	}
	w.Expect(w.sim.Counters()[rolling]).To(BeNumerically("<=", 5), "the portions")

	w.calls()
	id := w.documents(poolsDocument)[0]
	w.editManually(id, func(body map[string]any) { body["healthMonitors"] = []any{} })
	observe()
	found := false
	for _, r := range w.sim.Requests() {
		found = found || r.Method == http.MethodGet && strings.Contains(r.Path, "loadBalancer/pools/")
	}
	w.Expect(found).To(BeTrue(), "another hint is a new reason")
}

func TestAManuallyReleasedAddressIsNotConsideredInUse(t *testing.T) {
	w, now := newTimedFixture(t)
	d := desired(service("c1", "web"), 80)
	other := desired(service("c1", "other"), 80)
	plan := w.converge(&d)
	now.Advance(31 * time.Second) // The cached lists are too old now.
	_, err := w.plan(&d)
	w.Expect(err).NotTo(HaveOccurred())
	now.Advance(20 * time.Second)
	_, err = w.plan(&other) // It needs the used addresses. The other lists are recent enough.
	w.Expect(err).NotTo(HaveOccurred())

	standing := w.documents("1.0.0/loadBalancer/virtualServices")
	w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteDocument(standing[0]) })
	now.Advance(15 * time.Second) // The lists are read again, the used addresses are not.
	d.Intent = nil
	d.Published = plan.Status.Addresses

	w.Expect(w.converge(&d).Status.Addresses).To(Equal(plan.Status.Addresses))
}
