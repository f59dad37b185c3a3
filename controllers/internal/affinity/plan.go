// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"maps"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Member is a VM of a group.
type Member struct {
	Group   Group
	VM      vcd.Ref
	Leaving bool // its machine is being deleted
	Hidden  bool // VCD shows it nowhere, which does not prove that it is gone
}

// A Kind of step.
type Kind string

// Kinds of steps.
const (
	Create Kind = "Creating"
	Update Kind = "Changing"
	Delete Kind = "Deleting"
)

// A Step is one write to a rule.
type Step struct {
	Kind Kind
	Rule vcd.AffinityRule // as it is to become; of one to delete, as it is
}

// A Conflict is a VM that is in a rule of another owner. VCD lets it be in no second one of the same kind.
type Conflict struct{ VM, Rule string }

// A Plan is what is missing for the rules of a cluster in one VDC.
type Plan struct {
	Steps     []Step
	Conflicts []Conflict
	Hidden    []string // names of the members that VCD does not show
	// Settled are the VMs for which nothing is missing: they are in the rule of their group, or need none.
	Settled []string
}

// PlanFor compares the rules of a VDC with the members of the groups of a cluster that are there. A VM that leaves
// stays in its rule until VCD takes it out with the VM, unless the rule is changed anyway. No rule of a group is
// deleted for lack of VMs while one of them is hidden.
func PlanFor(infraID string, members []Member, rules []vcd.AffinityRule) Plan {
	ours, taken := sortRules(infraID, rules)
	byRule := map[string][]Member{}
	for _, m := range members {
		if m.Group.Ruled {
			name := ruleName(infraID, m.Group.Name)
			byRule[name] = append(byRule[name], m)
		}
	}
	var p Plan
	for _, name := range slices.Sorted(maps.Keys(byRule)) {
		p.addGroup(name, byRule[name], ours[name], taken)
		delete(ours, name)
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		p.remove(ours[name])
	}
	return p
}

// A place is a VM in a rule of a kind: VCD lets it be in one of each.
type place struct {
	vm    string
	apart bool
}

// sortRules returns the rules of the cluster by name, and the places of VMs in rules of others.
func sortRules(infraID string, rules []vcd.AffinityRule) (ours map[string][]vcd.AffinityRule,
	taken map[place]string,
) {
	ours = map[string][]vcd.AffinityRule{}
	taken = map[place]string{}
	for _, rule := range rules {
		if strings.HasPrefix(rule.Name, Prefix(infraID)) {
			ours[rule.Name] = append(ours[rule.Name], rule)
			continue
		}
		for _, vm := range rule.VMs {
			taken[place{vm: vm.ID, apart: rule.Apart}] = rule.Name
		}
	}
	return ours, taken
}

// addGroup plans the rule of one group, of which there may be several after an answer of VCD was lost.
func (p *Plan) addGroup(name string, members []Member, found []vcd.AffinityRule, taken map[place]string) {
	wanted := vcd.AffinityRule{
		Ref:     vcd.Ref{Name: name},
		Apart:   !members[0].Group.Together,
		Enabled: true,
	}
	wanted.Mandatory = !slices.ContainsFunc(members, func(m Member) bool { return !m.Leaving && !m.Group.Required })
	leaving := map[string]bool{}
	hidden := false
	for _, m := range members {
		other := taken[place{vm: m.VM.ID, apart: wanted.Apart}]
		switch {
		case m.Leaving:
			leaving[m.VM.ID] = true
		case m.Hidden:
			hidden = true
			p.Hidden = append(p.Hidden, m.VM.Name)
		case other != "":
			p.Conflicts = append(p.Conflicts, Conflict{VM: m.VM.Name, Rule: other})
		default:
			wanted.VMs = append(wanted.VMs, m.VM)
		}
	}
	slices.SortFunc(wanted.VMs, func(a, b vcd.Ref) int { return strings.Compare(a.ID, b.ID) })
	switch {
	case len(wanted.VMs) < vcd.MinRuleVMs && hidden:
		p.settle(wanted.VMs)
	case len(wanted.VMs) < vcd.MinRuleVMs:
		p.settle(wanted.VMs)
		p.remove(found)
	case len(found) == 0:
		p.Steps = append(p.Steps, Step{Create, wanted})
	default:
		p.change(found, wanted, leaving)
	}
}

// change plans that the first of the rules of a group becomes as wanted, and the only one.
func (p *Plan) change(found []vcd.AffinityRule, wanted vcd.AffinityRule, leaving map[string]bool) {
	wanted.ID = found[0].ID
	p.settle(slices.DeleteFunc(slices.Clone(wanted.VMs), func(vm vcd.Ref) bool {
		return !found[0].Has(vm.ID) || differs(found[0], wanted)
	}))
	if differs(found[0], wanted) || !sameVMs(found[0], wanted, leaving) {
		p.Steps = append(p.Steps, Step{Update, wanted})
	}
	p.remove(found[1:])
}

func (p *Plan) settle(vms []vcd.Ref) {
	for _, vm := range vms {
		p.Settled = append(p.Settled, vm.ID)
	}
}

func (p *Plan) remove(rules []vcd.AffinityRule) {
	for _, rule := range rules {
		p.Steps = append(p.Steps, Step{Delete, rule})
	}
}

func differs(a, b vcd.AffinityRule) bool {
	return a.Apart != b.Apart || a.Enabled != b.Enabled || a.Mandatory != b.Mandatory
}

// sameVMs reports whether a rule has the wanted VMs, and besides only such that leave.
func sameVMs(found, wanted vcd.AffinityRule, leaving map[string]bool) bool {
	for _, vm := range wanted.VMs {
		if !found.Has(vm.ID) {
			return false
		}
	}
	return !slices.ContainsFunc(found.VMs, func(vm vcd.Ref) bool { return !wanted.Has(vm.ID) && !leaving[vm.ID] })
}
