// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	rulesDocument  = "1.0.0/edgeGateways/{gateway}/firewall/rules"
	rulesOperation = "/cloudapi/2.0.0/edgeGateways/firewall/rules"
	// firewallDocument is the ID of all rules in the simulator until they are changed.
	firewallDocument = "the firewall"
)

// guarded desires a load balancer with source ranges.
func guarded(o loadbalancer.Owner, ports ...int) lb.Desired {
	d := desired(o, ports...)
	d.SourceRanges = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	return d
}

// newFilteredFixture returns a fixture with source ranges enabled, and with a manual rule in the gateway's firewall.
func newFilteredFixture(t *testing.T, mods ...func(*vcdsim.Config)) *fixture {
	t.Helper()
	w := newFixture(t, vcdsim.K8sTenant(), mods...)
	w.opts.SourceRanges = true
	w.restart()
	org := w.sim.State().Model.Orgs[1].ID
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.AddDocument(rulesDocument, "edgeFirewall", org, w.gateway,
			map[string]any{
				"id": firewallDocument,
				"userDefinedRules": []any{
					map[string]any{
						"id":          "00000000-0000-4000-8000-000000000001",
						"name":        "theirs",
						"actionValue": "ALLOW",
						"enabled":     true,
						"version":     map[string]any{"version": 7.0},
					},
				},
			})
	})
	return w
}

// A firewallRule is a rule as stored in the simulator.
type firewallRule struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Action       string   `json:"actionValue"`
	Enabled      bool     `json:"enabled"`
	Sources      []string `json:"sourceFirewallIpAddresses"`
	Destinations []string `json:"destinationFirewallIpAddresses"`
	Version      struct {
		Version int `json:"version"`
	} `json:"version"`
}

func (w *fixture) firewall() []firewallRule {
	w.t.Helper()
	var found struct {
		Rules []firewallRule `json:"userDefinedRules"`
	}
	for _, doc := range w.sim.State().Documents {
		if doc.Path == rulesDocument {
			w.Expect(json.Unmarshal(doc.Body, &found)).To(Succeed())
		}
	}
	return found.Rules
}

// admits checks the whole firewall: the clients that may reach an address, and the others, before the unchanged manual
// rule.
func (w *fixture) admits(address string, sources ...string) {
	w.t.Helper()
	rules := w.firewall()
	w.Expect(rules).To(HaveLen(3))
	w.Expect([]string{rules[0].Action, rules[1].Action}).To(Equal([]string{"ALLOW", "DROP"}))
	w.Expect([][]string{rules[0].Destinations, rules[1].Destinations}).To(HaveEach([]string{address}))
	w.Expect(rules[0].Sources).To(Equal(sources))
	w.Expect(rules[1].Sources).To(BeEmpty())
	w.Expect(rules[2]).To(And(HaveField("Name", "theirs"), HaveField("Version.Version", 7)))
}

// unfiltered checks that only the manual rule is left.
func (w *fixture) unfiltered() {
	w.t.Helper()
	w.Expect(w.firewall()).To(ConsistOf(And(HaveField("Name", "theirs"), HaveField("Version.Version", 7))))
}

func TestSourceRangesAreAddedAndRemoved(t *testing.T) {
	for _, version := range []vcdsim.Version{vcdsim.Version105, vcdsim.Version106} {
		t.Run("with API "+string(version), func(t *testing.T) {
			t.Parallel()
			w := newFilteredFixture(t, func(c *vcdsim.Config) { c.Version = version })
			d := guarded(service("c1", "web"), 80, 443)
			plan := w.converge(&d)
			w.Expect(plan.Done()).To(BeTrue())
			address := plan.Status.Addresses[0].String()
			w.admits(address, "192.0.2.0/24")
			w.calls()

			w.converge(&d)
			reads, writes, calls := w.calls()
			w.Expect(reads+writes).To(BeZero(), "%v", calls)

			d.SourceRanges = append(d.SourceRanges, netip.MustParsePrefix("198.51.100.0/25"))
			w.converge(&d)
			w.admits(address, "192.0.2.0/24", "198.51.100.0/25")
			_, writes, calls = w.calls()
			w.Expect(writes).To(Equal(2), "one rule is created, one is deleted: %v", calls)

			d.SourceRanges = nil
			w.converge(&d)
			w.unfiltered()
			d.SourceRanges = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			w.converge(&d)
			w.remove(d)
			w.unfiltered()
			w.Expect(w.left("")).To(BeEmpty())
			for _, r := range w.sim.Requests() {
				w.Expect(r.Method == http.MethodPut && strings.Contains(r.Path, "firewall/rules")).To(BeFalse(),
					"the collection is never written")
			}
			w.Expect(w.sim.Unhandled()).To(BeEmpty())
		})
	}
}

func TestADisabledOrInvertedRuleIsRecreated(t *testing.T) {
	for _, edit := range []map[string]any{
		{"enabled": false},
		{"actionValue": "ALLOW"},
		{"actionValue": "DROP"},
	} {
		t.Run(fmt.Sprint(edit), func(t *testing.T) {
			t.Parallel()
			w := newFilteredFixture(t)
			d := guarded(service("c1", "web"), 80)
			address := w.converge(&d).Status.Addresses[0].String()
			docs := w.sim.State().Documents
			i := slices.IndexFunc(docs, func(doc vcdsim.Document) bool { return doc.Path == rulesDocument })
			w.sim.Edit(func(e *vcdsim.Editor) {
				w.Expect(e.Document(docs[i].ID, func(body map[string]any) {
					for _, rule := range body["userDefinedRules"].([]any)[:2] {
						maps.Copy(rule.(map[string]any), edit)
					}
				})).To(BeTrue())
			})
			w.restart()

			w.converge(&d)

			w.admits(address, "192.0.2.0/24")
			for _, rule := range w.firewall() {
				w.Expect(rule.Enabled).To(BeTrue())
			}
		})
	}
}

func TestSourceRangesWithoutSingleRuleRequests(t *testing.T) {
	w := newFilteredFixture(t, func(c *vcdsim.Config) { c.Version = vcdsim.Version104 })
	d := guarded(service("c1", "web"), 80)
	w.sim.ResetCounters()

	plan, err := w.plan(&d)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", lb.Unsupported)))
	w.Expect(plan.Steps).To(BeEmpty())
	gone := absent(d)
	w.converge(&gone)
	w.unfiltered()
	w.Expect(w.left("")).To(BeEmpty())
}

func TestRestartAfterEveryStepOfAFirewalledLoadBalancer(t *testing.T) {
	shape := shape{"with source ranges", vcdsim.K8sTenant, guarded, 0, 0, 0}
	for n, done := 1, 1; done >= n; n++ {
		w := newFilteredFixture(t)
		done = 0
		w.life(shape, func(d *lb.Desired) {
			w.dieAfter(d, n, &done)
			if !d.Absent {
				protocols := map[loadbalancer.Protocol]bool{}
				for _, l := range d.Listeners {
					protocols[l.Protocol] = true
				}
				w.Expect(w.firewall()).To(HaveLen(2*len(protocols)+1), "stopped after %d steps", n)
			}
		})
		w.unfiltered()
		NewWithT(t).Expect(done).To(BeNumerically(">", 15))
	}
}

func TestARuleWithALostResponseIsCreatedOnce(t *testing.T) {
	for name, fault := range faults() {
		t.Run("VCD "+name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "POST", "DELETE"} {
				w := newFilteredFixture(t)
				fault.Operation = method + " " + rulesOperation
				fault.Skip = len(name) % 2
				fault.Count = 1
				w.sim.Faults().Add(fault)
				d := guarded(service("c1", "web"), 80)
				w.converge(&d)
				w.Expect(w.firewall()).To(HaveLen(3))
				w.remove(d)
				w.unfiltered()
			}
		})
	}
}

func TestTheFirstRuleIsDeletedConcurrently(t *testing.T) {
	w := newFilteredFixture(t)
	d := guarded(service("c1", "web"), 80)
	var err error
	for _, step := range w.steps(&d) {
		if step.Kind == lb.KindFirewall {
			w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteDocument(firewallDocument) })
		}
		if err = w.driver.Run(t.Context(), w.gateway, step); err != nil {
			break
		}
	}
	w.Expect(err).To(MatchError(loadbalancer.ErrBusy), "the rule after the new one is gone")

	w.converge(&d)
	w.Expect(w.firewall()).To(HaveExactElements(HaveField("Action", "ALLOW"), HaveField("Action", "DROP")))
}

func TestUnrequestedRulesOfAServiceAreRemoved(t *testing.T) {
	w := newFilteredFixture(t)
	d := guarded(service("c1", "web"), 80)
	for _, step := range w.steps(&d) {
		if step.Kind == lb.KindService {
			break // the process stops before it creates the virtual service, which would show that there are rules
		}
		w.run(step)
	}
	w.Expect(w.firewall()).To(HaveLen(3))
	w.restart()
	d.SourceRanges = nil

	plan := w.converge(&d)

	w.Expect(plan.Done()).To(BeTrue())
	w.unfiltered()
}

func TestRulesAreDeletedEvenIfSourceRangesWereDisabled(t *testing.T) {
	w := newFilteredFixture(t)
	d := guarded(service("c1", "web"), 80)
	w.converge(&d)
	w.opts.SourceRanges = false
	w.restart()

	w.remove(d)

	w.unfiltered()
}
