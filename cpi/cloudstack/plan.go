// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of findings.
const (
	// reasonNoLoadBalancing means that the network does not support load balancers, or allows no clients.
	reasonNoLoadBalancing = "LoadBalancerNotSupported"
	// reasonAddressUnusable means that the load balancer cannot use the requested address.
	reasonAddressUnusable = "AddressUnusable"
	// reasonAddressAdopted means that an address that the original controller associated was adopted and will be released
	// with its Service.
	reasonAddressAdopted = "AddressAdopted"
	// reasonAddressNotReleased means that an address is not released with its Service.
	reasonAddressNotReleased = "AddressNotReleased"
	// reasonPortInUse means that another rule uses the port of the address.
	reasonPortInUse = "PortInUse"
	// reasonConflictingFirewallRule means that rules of other owners allow clients that the Service does not allow.
	reasonConflictingFirewallRule = "ConflictingFirewallRule"
	// reasonNodeInOtherNetwork means that a node is not in the network of the load balancer.
	reasonNodeInOtherNetwork = "NodeInOtherNetwork"
	// reasonMachineNotVisible means that the machine of a node is not visible to the user.
	reasonMachineNotVisible = "MachineNotVisible"
)

// followFor returns a plan that only updates the members of the existing rules.
func followFor(s *state, want service.Desired) loadbalancer.Plan {
	p := newPlanner(s, want)
	if p.view.setMembers(); p.view.allHidden() {
		p.out.Wait = noMachine
		return p.out
	}
	for _, r := range p.view.mine {
		p.follow(r)
	}
	return p.out
}

// planFor returns the plan to reach the desired state. The removal of a load balancer that moved keeps the addresses that
// it has at its new location, and the ACL rules of its ports there.
func planFor(s *state, want service.Desired, moved cpi.Moved) loadbalancer.Plan {
	p := newPlanner(s, want)
	p.moved = moved
	if want.Absent {
		p.remove()
	} else {
		p.build()
	}
	p.out.Status.Objects = append(p.out.Status.Objects, p.objects()...)
	return p.out
}

// build plans the load balancer.
func (p *planner) build() {
	p.view.setMembers()
	p.validate()
	target := p.target()
	if len(p.out.Refusals) > 0 || p.out.Wait != "" {
		p.status(target)
		return
	}
	if p.planAddress(target); target == "" {
		return // the address is only known after the first step
	}
	for _, port := range p.want.Ports {
		p.serve(target, port)
	}
	if len(p.out.Refusals) > 0 {
		p.out.Steps = nil
		p.out.Intent = nil
		return
	}
	p.tagFirewalls("tag the new firewall rules of "+target, target, p.opened...)
	p.removeStale(target)
	p.status(target)
	if p.out.Done() {
		p.out.Unused = without(p.want.Intent, func(a netip.Addr) bool { return a.String() == target && !p.want.Keep })
	}
}

func (p *planner) validate() {
	if !p.state.network.Has("Lb") {
		p.refuse(reasonNoLoadBalancing,
			"network %s has no service Lb: set another one in cloud-config or with the annotation %snetwork-id, or add the service to its offering", p.state.network.Name, prefix)
	}
	if p.state.filter() == closed {
		p.refuse(reasonNoLoadBalancing, "the ACL list %s of network %s allows no client and cannot be changed: assign the network its own list", p.state.network.ACLName, p.state.network.Name)
	}
	for _, r := range p.view.mine {
		if r.State == "Revoke" || r.State == "Deleting" {
			p.out.Wait = "rule " + r.Name + " is being removed"
		}
	}
	if p.view.allHidden() {
		p.out.Wait = noMachine
	}
}

// removeStale plans the removal of the owner's objects that are not desired.
func (p *planner) removeStale(target string) {
	desired := func(r cloudstack.Rule) bool {
		return r.Address == target && slices.ContainsFunc(p.want.Ports, func(port service.Port) bool {
			return int(r.PublicPort) == port.Number && transport(r.Protocol) == protocolOf(port)
		})
	}
	p.removeRules(without(p.view.mine, desired))
	p.removeACLs(p.want.Ports)
	a, _ := p.state.address(target)
	p.removeFirewalls(func(f cloudstack.Firewall) bool {
		return f.AddressID == a.ID && slices.ContainsFunc(p.want.Ports, func(port service.Port) bool {
			return isFor(f, port)
		})
	})
	p.noticeMissing()
	p.releaseUnused(target)
}

// remove plans the removal of all objects of the owner.
func (p *planner) remove() {
	for _, r := range p.view.mine {
		if a, found := p.state.address(r.Address); found && p.view.inherited(r) && !p.view.holds(a) && !p.view.intended(a) {
			p.notice(reasonAddressNotReleased, "the address %s is not released, because its association with this Service is not proved: release it if it is unused", r.Address)
		}
	}
	p.removeRules(p.view.mine)
	p.removeACLs(p.moved.Desired.Ports)
	p.removeFirewalls(func(cloudstack.Firewall) bool { return false })
	p.releaseUnused("")
}

// objects returns the existing objects of the owner.
func (p *planner) objects() []loadbalancer.Object {
	var out []loadbalancer.Object
	for _, r := range p.view.mine {
		out = append(out, loadbalancer.Object{
			Kind:      "rule",
			ID:        r.ID,
			Name:      r.Name,
			Addresses: parsed(r.Address),
			Inherited: p.view.inherited(r),
		})
	}
	for _, address := range p.state.addresses {
		if p.view.holds(address) {
			out = append(out, loadbalancer.Object{
				Kind:      "address",
				ID:        address.ID,
				Name:      address.IPAddress,
				Addresses: parsed(address.IPAddress),
			})
		}
	}
	return out
}

// status sets the status that clients can rely on.
func (p *planner) status(target string) {
	complete := target != ""
	for _, port := range p.want.Ports {
		s := loadbalancer.PortStatus{Protocol: port.Protocol, Port: port.Number}
		if i := p.view.ruleIndex(target, port); i < 0 {
			s.Problem = "NotBuilt"
			complete = false
		}
		p.out.Status.Ports = append(p.out.Status.Ports, s)
	}
	if a, err := netip.ParseAddr(target); err == nil && complete {
		p.out.Status.Addresses = []netip.Addr{a}
	}
}
