package cloudstack

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// An index finds the virtual machines of nodes.
type index struct {
	byID   map[string]*cloudstack.VM
	byName map[string][]*cloudstack.VM
}

func newIndex(vms []cloudstack.VM) index {
	x := index{map[string]*cloudstack.VM{}, map[string][]*cloudstack.VM{}}
	for i := range vms {
		vm, name := &vms[i], strings.ToLower(vms[i].Name)
		x.byID[strings.ToLower(vm.ID)] = vm
		x.byName[name] = append(x.byName[name], vm)
	}
	return x
}

// vmOf returns the virtual machine of a node: by its provider ID, and before it has one, by name and address; nil if it
// is not there.
func (x index) vmOf(m plan.Member) *cloudstack.VM {
	if m.ProviderID != "" {
		return x.byID[idOf(m.ProviderID)]
	}
	for _, vm := range x.byName[strings.ToLower(m.Node)] {
		if slices.ContainsFunc(vm.NICs, func(n cloudstack.NIC) bool { return contains(m.Addresses, n.IPAddress) }) {
			return vm
		}
	}
	return nil
}

// setMembers finds the virtual machines of the members that are in the network, with the names of their Nodes, and
// those that are not.
func (v *view) setMembers() {
	x, seen := newIndex(v.vms), map[string]bool{}
	for _, m := range v.want.Members {
		vm := x.vmOf(m)
		switch {
		case vm == nil || seen[vm.ID]:
			continue
		case !inNetwork(vm, v.network.ID):
			v.elsewhere = append(v.elsewhere, m.Node)
		default:
			v.ids, v.names = append(v.ids, vm.ID), append(v.names, m.Node)
		}
		seen[vm.ID] = true
	}
}

func inNetwork(vm *cloudstack.VM, network string) bool {
	return slices.ContainsFunc(vm.NICs, func(n cloudstack.NIC) bool { return n.NetworkID == network })
}

// noticeElsewhere adds a notice for each member that is not in the network.
func (p *planner) noticeElsewhere() {
	for _, node := range p.elsewhere {
		p.notice(NodeElsewhere, "node %s has no NIC in network %s and is no member of the load balancer", node,
			p.network.Name)
	}
}

// minus returns the elements of a list that another one has not.
func minus(all, others []string) []string {
	drop := make(map[string]bool, len(others))
	for _, x := range others {
		drop[x] = true
	}
	return without(all, func(x string) bool { return drop[x] })
}
