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
	Hidden  bool // it is not visible in VCD, which does not prove that it is gone
}

// A Kind is the kind of a step.
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
	Rule vcd.AffinityRule // the desired rule, or the rule to delete
}

// A Conflict is a VM in a rule of another owner. VCD allows a VM in only one rule of the same kind.
type Conflict struct{ VM, Rule string }

// A Plan contains the steps to the desired rules of a cluster in one VDC, and the obstacles.
type Plan struct {
	Steps     []Step
	Conflicts []Conflict
	Hidden    []string // names of the VMs that are not visible
	// Settled contains the IDs of VMs that need no step: they are in the correct rule of their group, or the group has
	// too few VMs for a rule.
	Settled []string
}

// PlanFor compares the rules of a VDC with the members in that VDC of a cluster's groups. The VM of a machine that is
// being deleted stays in its rule until VCD deletes the VM and removes it from the rule, unless the rule changes
// anyway. A rule with too few VMs is not deleted while a VM of its group is hidden.
func PlanFor(infraID string, members []Member, rules []vcd.AffinityRule) Plan {
	ours, taken := sortRules(infraID, rules)
	byRule := map[string][]Member{}
	for _, m := range members {
		if m.Group.NeedsRule {
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

// A place is the membership of a VM in a rule of one kind. VCD allows a VM in one rule of each kind.
type place struct {
	vm    string
	apart bool // in an anti-affinity rule
}

// sortRules returns the rules of the cluster by name, and the names of the rules of other owners by the places that
// they take.
func sortRules(infraID string, rules []vcd.AffinityRule) (ours map[string][]vcd.AffinityRule, taken map[place]string) {
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

// addGroup plans the rule of one group. found may contain several rules if a response to a creation was lost.
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

// change plans an update of the first rule of a group to the wanted state, if it differs, and the deletion of the
// others.
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

// settle adds VMs to Settled.
func (p *Plan) settle(vms []vcd.Ref) {
	for _, vm := range vms {
		p.Settled = append(p.Settled, vm.ID)
	}
}

// remove plans the deletion of rules.
func (p *Plan) remove(rules []vcd.AffinityRule) {
	for _, rule := range rules {
		p.Steps = append(p.Steps, Step{Delete, rule})
	}
}

// differs reports whether two rules differ in anything but their names and VMs.
func differs(a, b vcd.AffinityRule) bool {
	return a.Apart != b.Apart || a.Enabled != b.Enabled || a.Mandatory != b.Mandatory
}

// sameVMs reports whether a rule contains the wanted VMs, and no others except VMs whose machines are being deleted.
func sameVMs(found, wanted vcd.AffinityRule, leaving map[string]bool) bool {
	for _, vm := range wanted.VMs {
		if !found.Has(vm.ID) {
			return false
		}
	}
	return !slices.ContainsFunc(found.VMs, func(vm vcd.Ref) bool { return !wanted.Has(vm.ID) && !leaving[vm.ID] })
}
