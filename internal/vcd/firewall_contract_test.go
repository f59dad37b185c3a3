// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// theirRules inserts a user's rules before all others.
func theirRules(to *target, edge string, names ...string) {
	rules := make([]any, len(names))
	for i, name := range names {
		rules[i] = map[string]any{
			"id":          fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
			"name":        name,
			"actionValue": "ALLOW",
			"enabled":     true,
			"version":     map[string]any{"version": 7.0},
		}
	}
	org := to.sim.State().Model.Orgs[1].ID
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.AddDocument("1.0.0/edgeGateways/{gateway}/firewall/rules", "edgeFirewall", org, edge,
			map[string]any{"userDefinedRules": rules})
	})
}

func TestOneFirewallRuleIsAddedAndRemovedAmongOthers(t *testing.T) {
	for _, version := range []vcdsim.Version{vcdsim.Version105, vcdsim.Version106} {
		t.Run("of API "+string(version), func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			to := newEdge(t, vcdsim.K8sTenant(), func(c *vcdsim.Config) { c.Version = version })
			s := to.session(t)
			edge := to.edgeOf(t, s)
			g.Expect(s.Features(ctx)).To(HaveField("SingleFirewallRule", true))
			g.Expect(s.Firewall.Rules(ctx, edge)).To(BeEmpty())
			create := func(spec vcd.FirewallRuleSpec) []vcd.FirewallRule {
				spec.Description = "of " + spec.Name
				spec.Protocol = "TCP"
				task, err := s.Firewall.CreateRule(ctx, edge, spec)
				g.Expect(done(t, s, task, err).Owner).To(Equal(edge), "VCD does not tell the id of a new rule") //nolint:contextcheck // the poller is of all who follow tasks
				rules, err := s.Firewall.Rules(ctx, edge)
				g.Expect(err).NotTo(HaveOccurred())
				return rules
			}
			ports := make([]int, 40)
			for i := range ports {
				ports[i] = 8000 + i
			}

			rules := create(vcd.FirewallRuleSpec{
				Name:        "drop",
				Destination: netip.MustParseAddr("203.0.113.20"),
				Ports:       ports,
				Action:      "DROP",
			})
			g.Expect(rules).To(Equal([]vcd.FirewallRule{{
				ID:          rules[0].ID,
				Name:        "drop",
				Description: "of drop",
				Enabled:     true,
				Action:      "DROP",
			}}))
			rules = create(vcd.FirewallRuleSpec{
				Name:        "allow",
				Destination: netip.MustParseAddr("2001:db8::20"),
				Ports:       []int{80},
				Action:      "ALLOW",
				Sources:     []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/48")},
				Before:      rules[0].ID,
			})
			g.Expect(rules).To(HaveExactElements(HaveField("Name", "allow"), HaveField("Name", "drop")))

			to.sim.ResetCounters()
			task, err := s.Firewall.DeleteRule(ctx, edge, rules[0].ID)
			done(t, s, task, err)
			g.Expect(s.Firewall.Rules(ctx, edge)).To(ConsistOf(rules[1]))
			_, calls := to.calls()
			g.Expect(calls).To(HaveLen(2), "%v", calls)
			_, err = s.Firewall.DeleteRule(ctx, edge, rules[0].ID)
			g.Expect(err).To(MatchError(vcd.ErrForbidden), "VCD responds the same for deleted and forbidden objects")
			_, err = s.Firewall.CreateRule(ctx, edge, vcd.FirewallRuleSpec{
				Name:        "late",
				Destination: netip.MustParseAddr("203.0.113.20"),
				Action:      "DROP",
				Before:      rules[0].ID,
			})
			g.Expect(err).To(MatchError(vcd.ErrInvalid), "the rule after it is gone")
		})
	}
}

func TestForeignFirewallRulesAreUnchanged(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	edge := to.edgeOf(t, s)
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprint("theirs ", i)
	}
	theirRules(to, edge, names...)
	before, err := s.Firewall.Rules(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before).To(HaveLen(300), "the list has no pages")

	task, err := s.Firewall.CreateRule(ctx, edge, vcd.FirewallRuleSpec{
		Name:        "ours",
		Destination: netip.MustParseAddr("203.0.113.20"),
		Protocol:    "UDP",
		Ports:       []int{53},
		Action:      "DROP",
		Before:      before[0].ID,
	})
	done(t, s, task, err)
	with, err := s.Firewall.Rules(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(with[0].Name).To(Equal("ours"))
	g.Expect(with[1:]).To(Equal(before))
	task, err = s.Firewall.DeleteRule(ctx, edge, with[0].ID)
	done(t, s, task, err)

	g.Expect(s.Firewall.Rules(ctx, edge)).To(Equal(before))
	for _, doc := range to.sim.State().Documents {
		if strings.HasSuffix(doc.Path, "firewall/rules") {
			g.Expect(strings.Count(string(doc.Body), `"version":7`)).To(Equal(300), "they were not written")
		}
	}
	g.Expect(slices.ContainsFunc(to.sim.Requests(),
		func(r vcdsim.Request) bool { return r.Method == http.MethodPut })).To(BeFalse())
}

func TestFirewallRulesOnUnsupportedGateways(t *testing.T) {
	rule := vcd.FirewallRuleSpec{
		Name:        "r",
		Destination: netip.MustParseAddr("203.0.113.20"),
		Protocol:    "TCP",
		Ports:       []int{80},
		Action:      "DROP",
	}
	tests := []struct {
		name  string
		fault vcdsim.Fault
		mod   func(*vcdsim.Config)
		err   error
	}{
		{"while the gateway is busy", vcdsim.Fault{Busy: vcdsim.BusyTenant}, nil, vcd.ErrBusy},
		{"without the right", vcdsim.Fault{Status: http.StatusForbidden}, nil, vcd.ErrForbidden},
		{"before VCD 10.5.1", vcdsim.Fault{}, func(c *vcdsim.Config) { c.Version = vcdsim.Version104 }, vcd.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			mods := []func(*vcdsim.Config){}
			if tt.mod != nil {
				mods = append(mods, tt.mod)
			}
			to := newEdge(t, vcdsim.K8sTenant(), mods...)
			s := to.session(t)
			edge := to.edgeOf(t, s)
			if tt.fault.Operation = "* /cloudapi/2.0.0/edgeGateways/firewall/rules"; tt.mod == nil {
				to.sim.Faults().Add(tt.fault)
			}

			_, err := s.Firewall.Rules(ctx, edge)
			g.Expect(err).To(MatchError(tt.err))
			_, err = s.Firewall.CreateRule(ctx, edge, rule)
			g.Expect(err).To(MatchError(tt.err))
			_, err = s.Firewall.DeleteRule(ctx, edge, "00000000-0000-4000-8000-000000000000")
			g.Expect(err).To(Or(MatchError(tt.err), MatchError(vcd.ErrForbidden)))
		})
	}
}
