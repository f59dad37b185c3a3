// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// provenPorts are the old names of ports whose objects are provably the owner's.
type provenPorts struct {
	names map[string]bool
	// unread is set if a pool has to be read in full before all is known.
	unread bool
}

// proveOldPorts finds the old names of ports whose objects are provably the owner's: of its cluster and of its Service.
// A published address of this Service alone proves both, as does the marker that one of them has already. Else names
// prove the cluster if its id is unique, or the members of the pool do if all are its nodes; and names prove the
// Service unless another one of the cluster has this name: then the pool's node port does, as it belongs to one Service
// at a time.
func proveOldPorts(d Desired, o Observed) provenPorts {
	p := prover{
		desired: d,
		ports:   provenPorts{names: map[string]bool{}},
	}
	published := func(a netip.Addr) bool { return slices.Contains(d.Published, a) }
	for _, x := range o.Services {
		both := func() bool { return slices.ContainsFunc(x.VIPs, published) }
		p.prove(KindService, x.Object, proof{both, both})
	}
	for _, x := range o.Pools {
		sameNodes := func() bool { return p.sameNodes(x) }
		sameNodePort := func() bool { return p.sameNodePort(x) }
		p.prove(KindPool, x.Object, proof{sameNodes, sameNodePort})
	}
	for _, x := range o.Rules {
		both := func() bool { return published(x.External) }
		p.prove(KindRule, x.Object, proof{both, both})
	}
	for _, x := range o.Profiles {
		none := func() bool { return false }
		p.prove(KindProfile, x.Object, proof{none, none})
	}
	return p.ports
}

// A prover collects the ports that objects prove.
type prover struct {
	desired Desired
	ports   provenPorts
}

// A proof asks an object itself whether it is the cluster's, and the Service's.
type proof struct{ ofCluster, ofService func() bool }

// prove notes the old name of the port of an object that is the owner's; the proof is asked where its name is none.
func (p *prover) prove(kind loadbalancer.Kind, x Object, itself proof) {
	owner := p.desired.Owner
	m, origin := OwnerOf(owner.Cluster, kind, x.Name, x.Description)
	switch {
	case origin == Marked && m.Owner.Is(owner):
		if _, port, ok := oldName(owner.Cluster, kind, x.Name); ok {
			p.ports.names[port] = true
		}
	case origin == OldName && Likely(owner, m.Owner) && (NamesProve(owner.Cluster) || itself.ofCluster()) &&
		(!p.desired.Duplicate || itself.ofService()):
		p.ports.names[m.Listener] = true
	}
}

// sameNodes reports whether all members of a pool are nodes of the cluster, if that was read.
func (p *prover) sameNodes(x Pool) bool {
	if !x.Full {
		p.ports.unread = true
		return false
	}
	return len(x.Members) > 0 &&
		!slices.ContainsFunc(x.Members, func(a netip.Addr) bool { return !slices.Contains(p.desired.Members, a.Unmap()) })
}

// sameNodePort reports whether a pool sends to a node port of the owner, if that was read.
func (p *prover) sameNodePort(x Pool) bool {
	if !x.Full {
		p.ports.unread = true
		return false
	}
	return slices.ContainsFunc(p.desired.Listeners,
		func(l Listener) bool { return l.NodePort == x.NodePort && l.NodePort != 0 })
}
