// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A probe is a client of the endpoint that connects through each member of its pools whenever something happens in
// VCD. It forwards as a load balancer does: to members that have responded to its monitor, which notices with a delay
// that a member has stopped responding. A connection to such a member is refused.
type probe struct {
	mu          sync.Mutex
	up          bool
	ends        bool                  // the control plane is being deleted as a whole
	answered    map[netip.Addr]string // the VMs that did
	faults      map[string]bool
	connections int
	refused     int
}

func newProbe() *probe {
	return &probe{answered: map[netip.Addr]string{}, faults: map[string]bool{}}
}

func (p *probe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d of %d connections were refused", p.refused, p.connections)
}

func (p *probe) refuse(why string) {
	p.connections++
	p.refused++
	p.faults[why] = true
}

func (p *probe) observe(s vcdsim.State, found []served) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := map[netip.Addr]bool{}
	owner := map[netip.Addr]string{}
	for _, vm := range s.VMs {
		for _, nic := range vm.NICs {
			for _, text := range []string{nic.Address, nic.Secondary} {
				if a, err := netip.ParseAddr(text); err == nil {
					runs[a] = vm.PoweredOn
					owner[a] = vm.ID
				}
			}
		}
	}
	for _, vs := range found {
		p.connect(vs, runs, owner)
	}
	if p.up && !p.ends && len(found) == 0 {
		p.refuse("no virtual service is there")
	}
	p.countTwice(s, found)
}

// connect connects once through each member of a virtual service that its monitor shows as up.
func (p *probe) connect(vs served, runs map[netip.Addr]bool, owner map[netip.Addr]string) {
	answers := 0
	for _, m := range vs.Members {
		switch a := m.Addr(); {
		case runs[a]:
			p.answered[a] = owner[a]
			p.connections++
			answers++
		case p.answered[a] != "" && (owner[a] == "" || owner[a] == p.answered[a]):
			p.refuse(fmt.Sprintf("member %s, which answered, was stopped", a))
		}
	}
	p.up = p.up || answers > 0
	if p.up && !p.ends && answers == 0 {
		p.refuse("no member answers")
	}
}

// countTwice finds objects of which there is one too many.
func (p *probe) countTwice(s vcdsim.State, found []served) {
	ports := map[int]int{}
	for _, vs := range found {
		if ports[vs.Port]++; ports[vs.Port] > 1 {
			p.faults[fmt.Sprintf("port %d is served twice", vs.Port)] = true
		}
	}
	pools := map[string]int{}
	for _, pool := range documents[wirePool](s, "loadBalancer/pools") {
		if pools[pool.Description]++; pools[pool.Description] > 1 {
			p.faults["a pool is there twice"] = true
		}
	}
	names := map[string]int{}
	for _, vm := range s.VMs {
		if names[vm.Name]++; names[vm.Name] > 1 {
			p.faults["VM "+vm.Name+" is there twice"] = true
		}
	}
}

// end records that the control plane is being deleted as a whole.
func (p *probe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = true
}

// TestTheProbeCountsRefusedConnections holds that a manager which did what the crash matrix excludes would be seen.
func TestTheProbeCountsRefusedConnections(t *testing.T) {
	for name, tt := range map[string]struct {
		harm func(*vcdsim.Editor, wireService)
		want []string
	}{
		"nothing happens": {func(*vcdsim.Editor, wireService) {}, nil},
		"a member is stopped": {
			func(e *vcdsim.Editor, _ wireService) { e.PowerOff(e.VM("a")) },
			[]string{"member 192.168.100.10, which answered, was stopped"},
		},
		"all members are taken out": {
			func(e *vcdsim.Editor, vs wireService) {
				e.Document(vs.Pool.ID, func(body map[string]any) {
					body["members"] = []any{}
					body["memberCount"] = 0
				})
			},
			[]string{"no member answers"},
		},
		"the virtual service is deleted": {
			func(e *vcdsim.Editor, vs wireService) { e.DeleteDocument(vs.ID) },
			[]string{"no virtual service is there"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, instant(), nil)
			w.Ready()
			w.add("a", "b")
			w.Ready("a")
			w.Ready("b")
			p := newProbe()
			state := w.Sim.State()
			p.observe(state, endpoint(state))
			w.Expect(p.String()).To(Equal("0 of 2 connections were refused"))

			vs := documents[wireService](state, "loadBalancer/virtualServices")[0]
			w.Sim.Edit(func(e *vcdsim.Editor) { tt.harm(e, vs) })
			state = w.Sim.State()
			p.observe(state, endpoint(state))

			w.Expect(slices.Sorted(maps.Keys(p.faults))).To(Equal(tt.want))
			w.Expect(p.refused).To(Equal(len(tt.want)))
		})
	}
}
