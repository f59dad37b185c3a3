// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const id = "urn:vcloud:entity:vmware:capvcdCluster:11111111-2222-3333-4444-555555555555"

var controlPlane = ruleName(id, "control-plane")

// vms returns VMs for single letters.
func vms(letters string) []vcd.Ref {
	var refs []vcd.Ref
	for _, letter := range letters {
		refs = append(refs, vcd.Ref{ID: string(letter), Name: "vm-" + string(letter)})
	}
	return refs
}

func members(policy infrav1.AntiAffinity, stay, leave string) []Member {
	var all []Member
	group := Group{
		Name:      "control-plane",
		NeedsRule: policy != infrav1.AntiAffinityNone,
		Required:  policy == infrav1.AntiAffinityRequired,
	}
	for _, vm := range vms(stay) {
		all = append(all, Member{Group: group, VM: vm})
	}
	for _, vm := range vms(leave) {
		all = append(all, Member{Group: group, VM: vm, Leaving: true})
	}
	return all
}

// rule returns an enabled rule that keeps VMs apart.
func rule(ruleID, name, letters string, mods ...func(*vcd.AffinityRule)) vcd.AffinityRule {
	r := vcd.AffinityRule{Ref: vcd.Ref{ID: ruleID, Name: name}, Apart: true, Enabled: true, VMs: vms(letters)}
	for _, mod := range mods {
		mod(&r)
	}
	return r
}

func mandatory(r *vcd.AffinityRule) { r.Mandatory = true }

func disabled(r *vcd.AffinityRule) { r.Enabled = false }

// hidden returns members that are invisible in VCD.
func hidden(letters string) []Member {
	all := members(infrav1.AntiAffinityPreferred, letters, "")
	for i := range all {
		all[i].Hidden = true
	}
	return all
}

func TestPlan(t *testing.T) {
	const soft, hard, none = infrav1.AntiAffinityPreferred, infrav1.AntiAffinityRequired, infrav1.AntiAffinityNone
	tests := []struct {
		name    string
		members []Member
		rules   []vcd.AffinityRule
		steps   []Step
		settled []string
	}{
		{name: "a single VM needs no rule", members: members(soft, "a", ""), settled: []string{"a"}},
		{
			name:    "two VMs get one rule",
			members: members(soft, "ba", ""),
			steps:   []Step{{Create, rule("", controlPlane, "ab")}},
		},
		{
			name:    "a required rule is mandatory",
			members: members(hard, "ab", ""),
			steps:   []Step{{Create, rule("", controlPlane, "ab", mandatory)}},
		},
		{
			name:    "a rule is kept while a VM of its group is hidden",
			members: append(members(soft, "a", ""), hidden("b")...),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "a")},
			settled: []string{"a"},
		},
		{
			name:    "visible VMs get their rule even if another is hidden",
			members: append(members(soft, "ab", ""), hidden("c")...),
			steps:   []Step{{Create, rule("", controlPlane, "ab")}},
		},
		{
			name:    "no changes are needed",
			members: members(soft, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab")},
			settled: []string{"a", "b"},
		},
		{
			name:    "all new VMs are added by one write",
			members: members(soft, "abcd", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab")},
			steps:   []Step{{Update, rule("1", controlPlane, "abcd")}},
			settled: []string{"a", "b"},
		},
		{
			name:    "a leaving VM causes no write",
			members: members(soft, "ab", "c"),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "abc")},
			settled: []string{"a", "b"},
		},
		{
			name:    "it is omitted from a write for another VM",
			members: members(soft, "abd", "c"),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "abc")},
			steps:   []Step{{Update, rule("1", controlPlane, "abd")}},
			settled: []string{"a", "b"},
		},
		{
			name:    "a rule is deleted with its second VM",
			members: members(soft, "a", "b"),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab")},
			steps:   []Step{{Delete, rule("1", controlPlane, "ab")}},
			settled: []string{"a"},
		},
		{
			name:    "a manually added VM is removed",
			members: members(soft, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "abx")},
			steps:   []Step{{Update, rule("1", controlPlane, "ab")}},
			settled: []string{"a", "b"},
		},
		{
			name:    "a manually disabled rule is enabled",
			members: members(soft, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab", disabled)},
			steps:   []Step{{Update, rule("1", controlPlane, "ab")}},
		},
		{
			name:    "a changed policy changes the rule",
			members: members(hard, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab")},
			steps:   []Step{{Update, rule("1", controlPlane, "ab", mandatory)}},
		},
		{
			name:    "None removes the rule",
			members: members(none, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab")},
			steps:   []Step{{Delete, rule("1", controlPlane, "ab")}},
		},
		{
			name:    "the rule of a deleted MachineDeployment is deleted",
			members: members(soft, "a", ""),
			rules:   []vcd.AffinityRule{rule("1", ruleName(id, "md-old"), "")},
			steps:   []Step{{Delete, rule("1", ruleName(id, "md-old"), "")}},
			settled: []string{"a"},
		},
		{
			name:    "a second rule of one group is deleted",
			members: members(soft, "ab", ""),
			rules:   []vcd.AffinityRule{rule("1", controlPlane, "ab"), rule("2", controlPlane, "")},
			steps:   []Step{{Delete, rule("2", controlPlane, "")}},
			settled: []string{"a", "b"},
		},
		{
			name:    "foreign rules are kept",
			members: members(soft, "a", ""),
			rules:   []vcd.AffinityRule{rule("1", "theirs", "xy"), rule("2", ruleName(strings.Repeat("9", 36), "md"), "pq")},
			settled: []string{"a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			p := PlanFor(id, tt.members, tt.rules)

			g.Expect(p.Steps).To(Equal(tt.steps))
			g.Expect(p.Settled).To(ConsistOf(tt.settled))
			g.Expect(p.Conflicts).To(BeEmpty())
		})
	}
}

func TestAVMInAForeignRuleStaysThere(t *testing.T) {
	g := NewWithT(t)

	p := PlanFor(id, members(infrav1.AntiAffinityRequired, "abc", ""),
		[]vcd.AffinityRule{
			rule("1", "theirs", "cx"),
			rule("2", "together", "ab", func(r *vcd.AffinityRule) {
				r.Apart = false
			}),
		})

	g.Expect(p.Steps).To(Equal([]Step{{Create, rule("", controlPlane, "ab", mandatory)}}))
	g.Expect(p.Conflicts).To(Equal([]Conflict{{VM: "vm-c", Rule: "theirs"}}))
	g.Expect(p.Settled).To(BeEmpty(), "VM c must not be powered on without its rule")
}

func TestGroups(t *testing.T) {
	tests := []struct {
		name   string
		labels map[string]string
		want   Group
	}{
		{name: "a machine without a group", want: Group{}},
		{
			name:   "a control plane",
			labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			want:   Group{Name: "control-plane", NeedsRule: true, Required: true},
		},
		{
			name:   "a worker",
			labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md-0"},
			want:   Group{Name: "md-md-0", NeedsRule: true, Required: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &infrav1.VCDMachine{Spec: infrav1.VCDMachineSpec{AntiAffinity: infrav1.AntiAffinityRequired}}
			m.Labels = tt.labels

			NewWithT(t).Expect(GroupOf(m)).To(Equal(tt.want))
		})
	}
}

// TestARuleIsRequiredIfAllItsMachinesRequireIt covers a rollout of templates with another policy.
func TestARuleIsRequiredIfAllItsMachinesRequireIt(t *testing.T) {
	g := NewWithT(t)
	newer := members(infrav1.AntiAffinityRequired, "cd", "")
	older := members(infrav1.AntiAffinityPreferred, "ab", "")

	mixed := PlanFor(id, slices.Concat(older, newer), nil)
	g.Expect(mixed.Steps).To(Equal([]Step{{Create, rule("", controlPlane, "abcd")}}))

	for i := range older {
		older[i].Leaving = true
	}
	replaced := PlanFor(id, slices.Concat(older, newer), nil)
	g.Expect(replaced.Steps).To(Equal([]Step{{Create, rule("", controlPlane, "cd", mandatory)}}))
}

func TestRuleNamesAreMarkersWithinTheLengthLimit(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 253)

	g.Expect(controlPlane).To(Equal("capi-11111111-2222-3333-4444-555555555555-control-plane"))
	g.Expect(len(ruleName(id, long))).To(BeNumerically("<=", 128))
	g.Expect(ruleName(id, long+"a")).NotTo(Equal(ruleName(id, long+"b")))
	g.Expect(ruleName(strings.ToUpper(id), "x")).To(Equal(ruleName(id, "x")))
}

func TestWaitersAreNotifiedOnce(t *testing.T) {
	g := NewWithT(t)
	var s Settled
	woken := 0
	g.Expect(s.Has("c", "a", func() { woken++ })).To(BeFalse())

	s.Set("c", []string{"b"})
	g.Expect(woken).To(BeZero())
	s.Set("c", []string{"a", "b"})
	s.Set("c", []string{"a", "b"})

	g.Expect(woken).To(Equal(1))
	g.Expect(s.Has("c", "a", nil)).To(BeTrue())
	s.Drop("c")
	g.Expect(s.Has("c", "a", func() {})).To(BeFalse())
}

// together returns members of a group whose VMs share a host.
func together(letters string) []Member {
	var all []Member
	for _, vm := range vms(letters) {
		all = append(all, Member{Group: Group{Name: "affinity-cache", Together: true, NeedsRule: true}, VM: vm})
	}
	return all
}

// onOneHost changes a rule to an affinity rule.
func onOneHost(r *vcd.AffinityRule) { r.Apart = false }

func TestPlanForVMsOnOneHost(t *testing.T) {
	name := ruleName(id, "affinity-cache")
	tests := []struct {
		name      string
		members   []Member
		rules     []vcd.AffinityRule
		steps     []Step
		conflicts []Conflict
	}{
		{name: "a single VM needs no rule", members: together("a")},
		{name: "two VMs get one rule", members: together("ab"), steps: []Step{{Create, rule("", name, "ab", onOneHost)}}},
		{name: "no changes are needed", members: together("ab"), rules: []vcd.AffinityRule{rule("1", name, "ab", onOneHost)}},
		{
			name:    "a rule that was changed to separate them is changed back",
			members: together("ab"),
			rules:   []vcd.AffinityRule{rule("1", name, "ab")},
			steps:   []Step{{Update, rule("1", name, "ab", onOneHost)}},
		},
		{
			name:    "the rule is deleted with the last VM but one",
			members: together("a"),
			rules:   []vcd.AffinityRule{rule("1", name, "ab", onOneHost)},
			steps:   []Step{{Delete, rule("1", name, "ab", onOneHost)}},
		},
		{
			name:    "a VM can also be in a foreign anti-affinity rule",
			members: together("ab"),
			rules:   []vcd.AffinityRule{rule("9", "theirs", "ax")},
			steps:   []Step{{Create, rule("", name, "ab", onOneHost)}},
		},
		{
			name:      "a VM cannot also be in a foreign affinity rule",
			members:   together("abc"),
			rules:     []vcd.AffinityRule{rule("9", "theirs", "ax", onOneHost)},
			steps:     []Step{{Create, rule("", name, "bc", onOneHost)}},
			conflicts: []Conflict{{VM: "vm-a", Rule: "theirs"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			p := PlanFor(id, tt.members, tt.rules)

			g.Expect(p.Steps).To(Equal(tt.steps))
			g.Expect(p.Conflicts).To(Equal(tt.conflicts))
		})
	}
}

func TestAMachineUsesItsOwnGroupOrThatOfItsPool(t *testing.T) {
	g := NewWithT(t)
	m := &infrav1.VCDMachine{}
	m.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md-0"}

	m.Spec.AntiAffinity = infrav1.AntiAffinityRequired
	g.Expect(GroupOf(m)).To(Equal(Group{Name: "md-md-0", NeedsRule: true, Required: true}))
	m.Spec.AntiAffinity = infrav1.AntiAffinityNone
	g.Expect(GroupOf(m)).To(Equal(Group{Name: "md-md-0"}))
	m.Spec.Affinity = &infrav1.Affinity{Group: "cache", Policy: infrav1.AffinityRequired}
	g.Expect(GroupOf(m)).To(Equal(Group{Name: "affinity-cache", Together: true, NeedsRule: true, Required: true}))
}
