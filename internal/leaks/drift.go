// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// serving is the health of a virtual service with a responding member.
const serving = "UP"

// Drift returns descriptions of the faults of one cluster's objects on edge gateways, by the URN of the object. It
// reads each pool and IP set of the cluster, because lists do not contain their members.
func Drift(ctx context.Context, s *vcd.Session, objects []Object) (map[string]string, error) {
	members := map[string][]netip.Addr{}
	for _, o := range objects {
		var err error
		switch o.Kind {
		case string(lb.KindPool):
			var p vcd.ServerPool
			p, err = s.Balancers.Pool(ctx, o.ID)
			for _, m := range p.Members {
				members[o.ID] = append(members[o.ID], m.Address)
			}
		case string(lb.KindSet):
			var set vcd.IPSet
			set, err = s.Firewall.IPSet(ctx, o.ID)
			members[o.ID] = set.Addresses
		}
		if err := vcd.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return drift(objects, members), nil
}

// drift compares the objects of one cluster with each other, and the members of pools and IP sets with its VMs.
func drift(objects []Object, members map[string][]netip.Addr) map[string]string {
	r := references{members: members}
	for _, o := range objects {
		switch o.Kind {
		case KindVM:
			r.machines = append(r.machines, o.Addresses...)
		case string(lb.KindService):
			r.pools = append(r.pools, o.pool)
			r.virtual = append(r.virtual, o.Addresses...)
		case string(lb.KindPool):
			r.known = append(r.known, o.ID)
		case string(lb.KindRule):
			r.translated = append(r.translated, o.Addresses...)
		}
	}
	found := map[string]string{}
	for _, o := range objects {
		if why := r.drift(o); why != "" {
			found[o.ID] = why
		}
	}
	return found
}

// references holds the references between the objects of a cluster.
type references struct {
	machines   []string // addresses of VMs
	virtual    []string // addresses of virtual services
	translated []string // outer addresses of NAT rules
	pools      []string // URNs of pools that virtual services use
	known      []string // URNs of existing pools
	members    map[string][]netip.Addr
}

func (r references) drift(o Object) string {
	switch o.Kind {
	case string(lb.KindService):
		return r.unserved(o)
	case string(lb.KindPool):
		if !slices.Contains(r.pools, o.ID) {
			return "not used by a virtual service"
		}
		return r.unknownMembers(o)
	case string(lb.KindSet):
		return r.unknownMembers(o)
	case string(lb.KindRule):
		if o.inside != "" && !slices.Contains(r.virtual, o.inside) {
			return "its target is " + o.inside + ", which is not an address of a virtual service"
		}
	case string(lb.KindAddress):
		if !slices.ContainsFunc(o.Addresses, r.has) {
			return "not used by a virtual service or NAT rule"
		}
	}
	return ""
}

// unserved returns the reason why a virtual service does not respond, or the empty string.
func (r references) unserved(o Object) string {
	switch {
	case o.pool != "" && !slices.Contains(r.known, o.pool):
		return "its pool does not belong to the cluster"
	case o.health != "" && o.health != serving:
		return "health " + o.health
	}
	return ""
}

// has reports whether a virtual service or a NAT rule uses an address.
func (r references) has(a string) bool {
	return slices.Contains(r.virtual, a) || slices.Contains(r.translated, a)
}

// unknownMembers reports members that are not the address of a VM of the cluster. It reports nothing if no VM is
// visible.
func (r references) unknownMembers(o Object) string {
	var found []string
	for _, a := range r.members[o.ID] {
		if !slices.Contains(r.machines, a.String()) {
			found = append(found, a.String())
		}
	}
	if len(found) == 0 || len(r.machines) == 0 {
		return ""
	}
	return "members without a VM of the cluster: " + strings.Join(found, " ")
}
