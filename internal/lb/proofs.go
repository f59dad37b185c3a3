// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// provenPorts are the old names of ports whose objects are proved to belong to the owner.
type provenPorts struct {
	names map[string]bool
	// unread is set if a pool must be read in full before all ports are known.
	unread bool
}

// proveOldPorts finds the old names of ports whose objects are proved to belong to the owner, that is, to its cluster
// and its Service. A published address of only this Service proves both, and so does an object of the port with the
// owner's marker. Otherwise, names prove the cluster if its ID is unique, or the members of the pool do if all are its
// nodes. Names also prove the Service, unless another Service of the cluster has the same name. Then the node port of
// the pool proves it, because a node port belongs to one Service at a time.
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

// A prover collects the proven ports.
type prover struct {
	desired Desired
	ports   provenPorts
}

// A proof checks the object itself: whether it belongs to the cluster, and to the Service.
type proof struct{ ofCluster, ofService func() bool }

// prove records the old name of an object's port if the object belongs to the owner. It uses the proof if the name
// proves nothing.
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

// sameNodes reports whether all members of a pool are nodes of the cluster. It returns false if the pool was not read
// in full.
func (p *prover) sameNodes(x Pool) bool {
	if !x.Full {
		p.ports.unread = true
		return false
	}
	return len(x.Members) > 0 &&
		!slices.ContainsFunc(x.Members, func(a netip.Addr) bool { return !slices.Contains(p.desired.Members, a.Unmap()) })
}

// sameNodePort reports whether a pool sends to a node port of the owner. It returns false if the pool was not read in
// full.
func (p *prover) sameNodePort(x Pool) bool {
	if !x.Full {
		p.ports.unread = true
		return false
	}
	return slices.ContainsFunc(p.desired.Listeners,
		func(l Listener) bool { return l.NodePort == x.NodePort && l.NodePort != 0 })
}
