// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

func TestDriftOnEdgeGateways(t *testing.T) {
	// Two nodes, a load balancer behind a NAT rule, and one directly on a floating IP.
	sound := func() []Object {
		return []Object{
			{Kind: KindVM, ID: "vm-1", Addresses: []string{"192.168.100.11"}},
			{Kind: KindVM, ID: "vm-2", Addresses: []string{"192.168.100.12", "10.0.0.12"}},
			{Kind: string(lb.KindService), ID: "vs-1", Addresses: []string{"192.168.8.2"}, pool: "pool-1", health: "UP"},
			{Kind: string(lb.KindService), ID: "vs-2", Addresses: []string{"203.0.113.7"}, pool: "pool-2", health: "UP"},
			{Kind: string(lb.KindPool), ID: "pool-1"},
			{Kind: string(lb.KindPool), ID: "pool-2"},
			{Kind: string(lb.KindSet), ID: "set-1"},
			{Kind: string(lb.KindRule), ID: "rule-1", Addresses: []string{"203.0.113.6"}, inside: "192.168.8.2"},
			{Kind: string(lb.KindAddress), ID: "ip-1", Addresses: []string{"203.0.113.6"}},
			{Kind: string(lb.KindAddress), ID: "ip-2", Addresses: []string{"203.0.113.7"}},
		}
	}
	for name, c := range map[string]struct {
		change func(o *Object) // of each object
		add    []Object
		member string // of set-1 and pool-1
		want   map[string]string
	}{
		"sound": {},
		"no member responds": {
			change: func(o *Object) {
				if o.ID == "vs-1" {
					o.health = "DOWN"
				}
			},
			want: map[string]string{"vs-1": "health DOWN"},
		},
		"a virtual service with another pool": {
			change: func(o *Object) {
				if o.ID == "vs-2" {
					o.pool = "of others"
				}
			},
			want: map[string]string{
				"vs-2":   "its pool does not belong to the cluster",
				"pool-2": "not used by a virtual service",
			},
		},
		"a changed rule": {
			change: func(o *Object) {
				if o.ID == "rule-1" {
					o.inside = "192.168.8.9"
				}
			},
			want: map[string]string{"rule-1": "its target is 192.168.8.9, which is not an address of a virtual service"},
		},
		"a leftover address": {
			add:  []Object{{Kind: string(lb.KindAddress), ID: "ip-3", Addresses: []string{"203.0.113.8"}}},
			want: map[string]string{"ip-3": "not used by a virtual service or NAT rule"},
		},
		"a second address of a VM": {member: "10.0.0.12"},
		"foreign members": {
			member: "192.168.100.77",
			want: map[string]string{
				"pool-1": "members without a VM of the cluster: 192.168.100.77",
				"set-1":  "members without a VM of the cluster: 192.168.100.77",
			},
		},
		"invisible VMs": {
			member: "192.168.100.77",
			change: func(o *Object) { o.Addresses = only(o.Kind != KindVM, o.Addresses) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects := append(sound(), c.add...)
			for i := range objects {
				if c.change != nil {
					c.change(&objects[i])
				}
			}
			list := []netip.Addr{netip.MustParseAddr("192.168.100.11")}
			if c.member != "" {
				list = append(list, netip.MustParseAddr(c.member))
			}
			found := drift(objects, map[string][]netip.Addr{"pool-1": list, "set-1": list})

			g.Expect(found).To(HaveLen(len(c.want)))
			for id, why := range c.want {
				g.Expect(found).To(HaveKeyWithValue(id, why))
			}
		})
	}
}

func only(keep bool, addresses []string) []string {
	if keep {
		return addresses
	}
	return nil
}
