// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestLifeOfAnAffinityRule(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newTarget(t)
	s := to.session(t)
	p := to.plan(t, s, "apart-0")
	second := to.plan(t, s, "apart-1")
	created, task, err := s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{
		Name:     "apart",
		Networks: []vcd.Ref{p.network.Ref},
		VMs:      []vcd.VMSpec{p.spec, second.spec},
	})
	await(t, s, task, err)
	vApp, err := s.VApps.VApp(ctx, created.ID)
	g.Expect(err).NotTo(HaveOccurred())
	wanted := vcd.AffinityRule{Ref: vcd.Ref{Name: "apart"}, Apart: true, Enabled: true, VMs: vApp.VMs}
	found := func() []vcd.AffinityRule {
		s.Affinity.ForgetAffinityRules()
		rules, err := s.Affinity.AffinityRules(ctx, p.vdc)
		g.Expect(err).NotTo(HaveOccurred())
		var ours []vcd.AffinityRule
		for _, rule := range rules {
			if rule.Name == "apart" {
				ours = append(ours, rule)
			}
		}
		return ours
	}

	_, err = s.Affinity.CreateAffinityRule(ctx, p.vdc, vcd.AffinityRule{Ref: wanted.Ref, VMs: vApp.VMs[:1]})
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "a rule needs two VMs")
	task, err = s.Affinity.CreateAffinityRule(ctx, p.vdc, wanted)
	await(t, s, task, err)
	g.Expect(found()).To(HaveLen(1))
	rule := found()[0]
	g.Expect(rule.VMs).To(ConsistOf(vApp.VMs))
	g.Expect([]bool{rule.Apart, rule.Enabled, rule.Mandatory, rule.Has(vApp.VMs[0].ID)}).To(
		Equal([]bool{true, true, false, true}))

	_, err = s.Affinity.CreateAffinityRule(ctx, p.vdc, wanted)
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "a VM can be in one rule only")

	rule.Mandatory = true
	task, err = s.Affinity.UpdateAffinityRule(ctx, rule)
	await(t, s, task, err)
	g.Expect(found()).To(HaveExactElements(HaveField("Mandatory", true)))

	task, err = s.Affinity.DeleteAffinityRule(ctx, rule.ID)
	await(t, s, task, err)
	g.Expect(found()).To(BeEmpty())
	removeVApp(t, s, vApp.ID)
}
