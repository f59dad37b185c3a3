// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
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
		vm := &vms[i]
		name := strings.ToLower(vms[i].Name)
		x.byID[strings.ToLower(vm.ID)] = vm
		x.byName[name] = append(x.byName[name], vm)
	}
	return x
}

// vmOf returns the virtual machine of a node, or nil if it is not listed. The lookup uses the provider ID or, before
// the node has one, the name and an address.
func (x index) vmOf(m service.Member) *cloudstack.VM {
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

// setMembers finds the virtual machines of the members: those in the network with the names of their Nodes, those in
// other networks, and those that are not visible.
func (v *view) setMembers() {
	x := newIndex(v.state.vms)
	seen := map[string]bool{}
	for _, m := range v.want.Members {
		vm := x.vmOf(m)
		switch {
		case vm == nil:
			if v.hidden = append(v.hidden, m); m.ProviderID != "" {
				v.stay = append(v.stay, idOf(m.ProviderID))
			}
			continue
		case seen[vm.ID]:
			continue
		case !inNetwork(vm, v.state.network.ID):
			v.elsewhere = append(v.elsewhere, m.Node)
		default:
			v.ids = append(v.ids, vm.ID)
			v.names = append(v.names, m.Node)
		}
		seen[vm.ID] = true
	}
}

// allHidden reports whether no machine of any member is visible. Then the targets of the load balancer are unknown.
func (v *view) allHidden() bool { return len(v.hidden) > 0 && len(v.ids)+len(v.elsewhere) == 0 }

// noMachine is the text of a plan that waits because of [view.allHidden].
const noMachine = "no machine of a member is visible to the user: members are not changed"

func inNetwork(vm *cloudstack.VM, network string) bool {
	return slices.ContainsFunc(vm.NICs, func(n cloudstack.NIC) bool { return n.NetworkID == network })
}

// noticeMissing adds a notice for each node that cannot be, or become, a member of the load balancer.
func (p *planner) noticeMissing() {
	for _, node := range p.view.elsewhere {
		p.notice(reasonNodeInOtherNetwork, "node %s has no NIC in network %s, so it is not a member of the load balancer", node,
			p.state.network.Name)
	}
	for _, m := range p.view.hidden {
		if m.ProviderID != "" {
			p.notice(reasonMachineNotVisible, "the machine of node %s is not visible to the user: the node keeps its membership in the load balancer, but is not added to it", m.Node)
		}
	}
}
