// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Marked is an object whose marker or name identifies its cluster.
type Marked struct {
	lb.Object

	Kind      loadbalancer.Kind
	Cluster   string
	By        lb.Writer
	Addresses []netip.Addr // of virtual services, rules and floating IPs
	Inside    netip.Addr   // target address of a rule
	Pool      lb.Ref       // of virtual services
	Health    string       // of virtual services, in VCD's terms (UP, DOWN, …)
}

// Marked returns the objects of all clusters on a gateway, freshly read and sorted by kind and name. hidden are the
// reasons why objects of some kinds are not visible. Objects of kinds that do not belong to one gateway
// ([lb.OnGateway]) belong to the organization. Errors are those of Observe.
func (d *Driver) Marked(ctx context.Context, gateway string) (all []Marked, hidden []error, err error) {
	err = d.scan(ctx, gateway, append(slices.Clone(allKinds), lb.KindMonitor), func(kind loadbalancer.Kind, o lb.Object, x any) {
		if cluster, by := lb.ClusterOf(kind, o.Name, o.Description); cluster != "" {
			m := Marked{Object: o, Kind: kind, Cluster: cluster, By: by, Addresses: addressesOn(x)}
			switch x := x.(type) {
			case lb.VirtualService:
				m.Pool = x.Pool
				m.Health = x.Health
			case lb.Rule:
				m.Inside = x.Internal
			}
			all = append(all, m)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range allKinds {
		if err := d.at(gateway).rights.hides(true, kind); err != nil {
			hidden = append(hidden, err)
		}
	}
	slices.SortFunc(all, func(a, b Marked) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, hidden, nil
}

// addressesOn returns the addresses of an object.
func addressesOn(x any) []netip.Addr {
	switch x := x.(type) {
	case lb.VirtualService:
		return x.VIPs
	case lb.Rule:
		return []netip.Addr{x.External}
	case lb.Claim:
		return []netip.Addr{x.Value}
	}
	return nil
}
