// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// target returns the address that the load balancer should have. An empty string means any address, unless a refusal
// was added.
func (p *planner) target() string {
	if len(p.want.Requested) > 0 {
		p.checkRequested(p.want.Requested[0].String())
		return p.want.Requested[0].String()
	}
	if a := p.view.current(); a != "" {
		return a
	}
	for _, a := range p.want.Intent {
		if p.view.isFree(a.String()) {
			return a.String()
		}
	}
	return p.chooseFree()
}

// chooseFree returns a free address, or an empty string if none is listed. The choice depends on the owner, so that
// different owners tend to choose different addresses.
func (p *planner) chooseFree() string {
	var all []string
	for _, a := range p.state.free {
		taken := func(u loadbalancer.Use) bool { return u.Address.String() == a.IPAddress }
		if ip, err := netip.ParseAddr(a.IPAddress); err == nil && ip.Is4() &&
			!slices.ContainsFunc(p.want.Reserved, taken) {
			all = append(all, a.IPAddress)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(p.want.Owner.UID))
	return all[int(hash.Sum32())%len(all)]
}

// checkRequested refuses a requested address that the load balancer cannot use.
func (p *planner) checkRequested(ip string) {
	a, found := p.state.address(ip)
	owner, marked := markerOf(a)
	switch {
	case !found && p.view.isFree(ip), p.moving(ip):
	case !found:
		p.refuse(reasonAddressUnusable,
			"the address %s is neither free nor associated with network %s, or is not visible to the user: associate it, or request another one", ip, p.state.network.Name)
	case !p.state.here(a):
		p.refuse(reasonAddressUnusable, "the address %s is associated with another network: request another one", ip)
	case releasing(a):
		p.refuse(reasonAddressUnusable, "the address %s is being released: request another one, or wait", ip)
	case a.IsStaticNAT:
		p.refuse(reasonAddressUnusable, "the address %s is used for static NAT: disable static NAT, or request another one", ip)
	case marked && !same(owner.owner, p.want.Owner):
		p.refuse(reasonAddressUnusable,
			"the address %s was associated for Service %s and is released with it: to share an address, associate one yourself and request it in both Services", ip, owner.owner)
	}
}

func (p *planner) moving(ip string) bool { return contains(p.moved.Addresses, ip) }

// planAddress plans the association of the load balancer's address, and its ownership marker if the address is proved
// to be associated for the load balancer.
func (p *planner) planAddress(target string) {
	mark := marker{owner: p.want.Owner}.tag()
	a, found := p.state.address(target)
	switch {
	case !found && target == "":
		p.do(step{verb: associate, tag: mark}, "associate a public address with network %s", p.state.network.Name)
	case !found:
		p.intend(target)
		requested := contains(p.want.Requested, target)
		p.do(step{verb: associate, address: target, requested: requested},
			"associate the public address %s with network %s", target, p.state.network.Name)
		if !p.want.Keep {
			p.do(step{verb: tag, address: target, tag: mark}, "tag the address %s", target)
		}
	case p.view.holds(a) && p.want.Keep:
		p.do(step{verb: untag, address: target, tag: cloudstack.Tag{Key: tagKey}},
			"keep the address %s in the account",
			target)
	case p.view.holds(a), p.want.Keep:
	case p.view.intended(a):
		p.do(step{verb: tag, address: target, tag: mark}, "tag the address %s", target)
	case p.takesOver(a):
		p.do(step{verb: tag, address: target, tag: mark}, "tag the address %s, which the original controller associated", target)
		p.notice(reasonAddressAdopted,
			"the address %s was associated by the previous controller, because the Service does not request it. It is released with the Service: to keep it, set the annotation %skeep-ip to true", target,
			prefix)
	}
}

// intend requests that an address is recorded for the Service before its first use.
func (p *planner) intend(ip string) {
	if a, err := netip.ParseAddr(ip); err == nil && !slices.Contains(p.want.Intent, a) {
		p.out.Intent = append(slices.Clone(p.want.Intent), a)
	}
}

// takesOver reports whether the original controller associated an address: either an annotation records that, or the
// Service requests no address and all rules of the address are those that the original controller created for it.
func (p *planner) takesOver(a cloudstack.Address) bool {
	if _, marked := markerOf(a); marked || a.IsSourceNAT || !slices.ContainsFunc(p.view.mine, p.view.inherited) {
		return false
	}
	return p.view.hasRules(a) && !p.view.usedByOthers(a) && (p.extra.Inherited || len(p.want.Requested) == 0)
}

// releaseUnused plans the release of the owner's addresses, except for one.
func (p *planner) releaseUnused(but string) {
	for _, a := range p.state.addresses {
		ours := p.view.holds(a) || p.view.intended(a)
		if ours && a.IPAddress != but && !p.moving(a.IPAddress) && p.state.here(a) {
			p.releaseOrKeep(a)
		}
	}
}

// releaseOrKeep plans the release of an address of the owner. An address that should be kept or is used elsewhere
// remains in the account.
func (p *planner) releaseOrKeep(a cloudstack.Address) {
	if releasing(a) {
		if p.want.Absent {
			p.out.Wait = "the address " + a.IPAddress + " is being released"
		}
		return
	}
	used := p.view.serves(a)
	if !used && !p.want.Keep {
		p.do(step{verb: release, address: a.IPAddress}, "release the address %s", a.IPAddress)
		return
	}
	if used {
		p.notice(reasonAddressNotReleased, "the address %s is not released, because it is used elsewhere (rules, port forwarding, VPN, NAT): it now belongs to the account", a.IPAddress)
	}
	if p.view.holds(a) {
		p.do(step{verb: untag, address: a.IPAddress, tag: cloudstack.Tag{Key: tagKey}},
			"keep the address %s in the account", a.IPAddress)
	}
}
