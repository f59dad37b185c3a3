// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// A site is a simulated VCD with VMs in vApps acme-vdc-vapp-000 and so on, and what the backend needs to see it.
type site struct {
	*WithT

	sim      *vcdsim.Simulator
	sessions *Sessions
	keys     vcd.Credentials
	version  string
	clock    *testingclock.FakeClock
}

func newSite(t *testing.T, vApps, each int) *site {
	t.Helper()
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: vApps, VMsPerVApp: each}
	s := &site{
		WithT: NewWithT(t),
		sim:   vcdsimtest.Start(t, vcdsim.Config{Model: model}),
		clock: testingclock.NewFakeClock(time.Now()),
	}
	pool := vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 1000, Burst: 1000, TaskPoll: 20 * time.Millisecond})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	s.keys = vcd.Credentials{Username: "ccm", Password: "password"}
	s.version = "1"
	s.sessions = NewSessions(pool, vcd.Config{Site: s.sim.URL(), Org: "acme", CABundle: s.sim.CA()},
		func() (vcd.Credentials, string, error) {
			return s.keys, s.version, nil
		})
	return s
}

func (s *site) machines(mods ...func(*MachineOptions)) *Machines {
	o := MachineOptions{Session: s.sessions.Session, ClusterID: "c1", VDCs: []string{"acme-vdc"}, Clock: s.clock}
	for _, mod := range mods {
		mod(&o)
	}
	return NewMachines(o)
}

func inVApps(names ...string) func(*MachineOptions) {
	return func(o *MachineOptions) { o.VApps = names }
}

// vm returns what the simulator knows of a VM.
func (s *site) vm(name string) vcdsim.VM {
	for _, vm := range s.sim.State().VMs {
		if vm.Name == name {
			return vm
		}
	}
	panic("there is no VM " + name)
}

func (s *site) providerID(name string) string {
	return ProviderName + "://urn:vcloud:vm:" + strings.TrimPrefix(s.vm(name).ID, "urn:vcloud:vm:")
}

func (s *site) nodes(names ...string) func(*MachineOptions) {
	ids := []string{}
	for _, name := range names {
		ids = append(ids, s.providerID(name))
	}
	return func(o *MachineOptions) { o.Nodes = func() Nodes { return Nodes{ProviderIDs: ids} } }
}

func (s *site) queries() int {
	n := 0
	for call, times := range s.sim.Counters() {
		if strings.HasPrefix(call, "GET /api/query type=vm") {
			n += times
		}
	}
	return n
}

func namesOf(machines []cpi.Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.Name)
	}
	return out
}

func TestLocationsOfVMsAreForgottenWithTheirNodes(t *testing.T) {
	s := newSite(t, 1, 2)
	ids := []string{s.providerID("acme-vdc-vapp-000-000"), s.providerID("acme-vdc-vapp-000-001")}
	m := s.machines(func(o *MachineOptions) { o.Nodes = func() Nodes { return Nodes{ProviderIDs: ids} } })
	look := func() {
		_, err := m.Snapshot(t.Context(), 0)
		s.Expect(err).NotTo(HaveOccurred())
		s.clock.SetTime(s.clock.Now().Add(time.Minute))
	}
	look()
	s.Expect(m.homes).To(HaveLen(2))

	ids = ids[1:]
	look()

	s.Expect(m.homes).To(HaveLen(1), "a cluster whose nodes come and go remembers no more than it has")
}

func TestSnapshotFindsTheClustersOwn(t *testing.T) {
	s := newSite(t, 3, 2)
	for _, tt := range []struct {
		name    string
		options []func(*MachineOptions)
		want    []string
	}{
		{
			name:    "in the vApps of the configuration",
			options: []func(*MachineOptions){inVApps("acme-vdc-vapp-001")},
			want:    []string{"acme-vdc-vapp-001-000", "acme-vdc-vapp-001-001"},
		},
		{
			name:    "in vApps whose names begin alike",
			options: []func(*MachineOptions){func(o *MachineOptions) { o.Prefix = "acme-vdc-vapp-00" }},
			want: []string{
				"acme-vdc-vapp-000-000", "acme-vdc-vapp-000-001", "acme-vdc-vapp-001-000", "acme-vdc-vapp-001-001",
				"acme-vdc-vapp-002-000", "acme-vdc-vapp-002-001",
			},
		},
		{
			name:    "anywhere, by the provider IDs of Nodes",
			options: []func(*MachineOptions){s.nodes("acme-vdc-vapp-002-001")},
			want:    []string{"acme-vdc-vapp-002-001"},
		},
		{
			name: "anywhere, by the names of Nodes",
			options: []func(*MachineOptions){func(o *MachineOptions) {
				o.Nodes = func() Nodes { return Nodes{Nameless: []string{"acme-vdc-vapp-000-001"}} }
			}},
			want: []string{"acme-vdc-vapp-000-001"},
		},
		{name: "nothing, if nothing is known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			machines, err := s.machines(tt.options...).Snapshot(t.Context(), time.Minute)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(namesOf(machines)).To(Equal(tt.want))
		})
	}
}

func TestSnapshotTells(t *testing.T) {
	s := newSite(t, 1, 2)
	s.sim.Edit(func(e *vcdsim.Editor) {
		large := ""
		rack := ""
		for _, p := range e.Model.Policies {
			switch p.Name {
			case "large":
				large = p.ID
			case "rack-a":
				rack = p.ID
			}
		}
		first := e.VM("acme-vdc-vapp-000-000")
		first.SizingPolicyID = large
		first.PlacementPolicyID = rack
		e.PowerOff(e.VM("acme-vdc-vapp-000-001"))
	})
	m := s.machines(inVApps("acme-vdc-vapp-000"), func(o *MachineOptions) {
		o.Zones = []Zone{
			{Name: "all", VDC: "acme-vdc"},
			{Name: "rack", Region: "south", VDC: "acme-vdc", PlacementPolicy: "rack-a"},
		}
		o.Region = "north"
	})

	machines, err := m.Snapshot(t.Context(), time.Minute)

	s.Expect(err).NotTo(HaveOccurred())
	one := machines[0]
	two := machines[1]
	s.Expect(one.ProviderID).To(Equal(s.providerID("acme-vdc-vapp-000-000")))
	s.Expect([]string{
		one.Type,
		one.Zone,
		one.Region,
		string(one.Power),
	}).To(Equal([]string{"large", "rack", "south", "on"}))
	s.Expect(one.NICs).To(Equal([]cpi.NIC{{
		Network:   "nodes",
		Primary:   true,
		Addresses: []netip.Addr{netip.MustParseAddr(s.vm(one.Name).NICs[0].Address)},
	}}))
	s.Expect(one.Doubtful).To(BeFalse())
	s.Expect([]string{two.Zone, two.Region, string(two.Power)}).To(Equal([]string{"all", "north", "off"}))
	s.Expect(two.Type).To(Equal(fmt.Sprintf("%dcpu-%dmib", s.vm(two.Name).CPUs, s.vm(two.Name).MemoryMiB)))
}

func TestNodesHaveNoZoneButNamedOnesWhereTheConfigurationSaysSo(t *testing.T) {
	s := newSite(t, 1, 1)
	zones := func(mods ...func(*MachineOptions)) []string {
		machines, err := s.machines(append(mods, inVApps("acme-vdc-vapp-000"))...).Snapshot(t.Context(), time.Minute)
		s.Expect(err).NotTo(HaveOccurred())
		return []string{machines[0].Zone, machines[0].Region}
	}
	none := func(o *MachineOptions) {
		o.NoDefaultZone = true
		o.Region = "north"
	}
	named := func(o *MachineOptions) { o.Zones = []Zone{{Name: "all", VDC: "acme-vdc"}} }

	s.Expect(zones()).To(Equal([]string{"acme-vdc", ""}))
	s.Expect(zones(none)).To(Equal([]string{"", "north"}))
	s.Expect(zones(none, named)).To(Equal([]string{"all", "north"}))
}

func TestConcurrentRequestsShareOneQuery(t *testing.T) {
	s := newSite(t, 1, 3)
	m := s.machines(inVApps("acme-vdc-vapp-000"))

	for range 100 {
		_, err := m.Snapshot(t.Context(), time.Minute)
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.Expect(s.queries()).To(Equal(1))

	s.clock.SetTime(s.clock.Now().Add(61 * time.Second))
	_, err := m.Snapshot(t.Context(), time.Minute)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.queries()).To(Equal(2))
}

func TestGet(t *testing.T) {
	s := newSite(t, 1, 3)
	id := s.providerID("acme-vdc-vapp-000-000")
	name := "acme-vdc-vapp-000-000"
	s.sim.Edit(func(e *vcdsim.Editor) {
		vm := e.VM(name)
		vm.Description = vcd.Marker{Cluster: "c1", Machine: "m"}.String()
		vm.NICs = append(vm.NICs,
			vcdsim.NIC{
				Index:     1,
				Network:   "storage",
				Mode:      "MANUAL",
				Address:   "fd00::7",
				Connected: true,
				MAC:       "00:50:56:00:00:99",
			})
	})
	m := s.machines(inVApps("acme-vdc-vapp-000"))

	machine, err := m.Get(t.Context(), strings.ToUpper(id[len(ProviderName):])) // no provider ID
	s.Expect(err).To(MatchError(ContainSubstring("provider ID")))
	s.Expect(machine).To(BeZero())

	machine, err = m.Get(t.Context(), " "+id+"\n")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(machine.Complete).To(BeTrue())
	s.Expect(machine.Doubtful).To(BeFalse(), "it has the cluster's marker")
	s.Expect(machine.NICs[1]).To(Equal(cpi.NIC{
		Index:     1,
		Network:   "storage",
		Addresses: []netip.Addr{netip.MustParseAddr("fd00::7")},
	}))
	machine, err = m.Get(t.Context(), s.providerID("acme-vdc-vapp-000-001"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(machine.Doubtful).To(BeTrue(), "it has none")
}

func TestEvidenceOfALostMachine(t *testing.T) {
	lost := func(s *site) string {
		id := s.providerID("acme-vdc-vapp-000-000")
		s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("acme-vdc-vapp-000-000")) })
		return id
	}
	tests := []struct {
		name  string
		vApps int
		do    func(*site) string
		want  gone.Verdict
	}{
		{
			name:  "a VM is gone when its vApp is shown without it, and another VM",
			vApps: 1,
			do:    lost,
			want:  gone.Verdict{State: gone.Gone, Counts: true},
		},
		{
			name:  "it may not be when no other VM is shown",
			vApps: 1,
			do: func(s *site) string {
				id := lost(s)
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("acme-vdc-vapp-000-001")) })
				return id
			},
			want: gone.Verdict{Reason: gone.SiblingsHidden},
		},
		{
			name:  "nor when its own vApp is not shown, though others are",
			vApps: 2,
			do: func(s *site) string {
				s.sim.Edit(func(e *vcdsim.Editor) {
					e.SetRole("acme", "ccm", vcdsim.RoleClusterAuthor)
					e.Share(e.VApp("acme-vdc-vapp-001"), "ccm", "ReadOnly")
					e.ExpireSessions()
				})
				return s.providerID("acme-vdc-vapp-000-000")
			},
			want: gone.Verdict{Reason: gone.HomeHidden},
		},
		{
			name:  "a user who sees all vApps, and another one, has the proof that its vApp is gone",
			vApps: 2,
			do: func(s *site) string {
				id := s.providerID("acme-vdc-vapp-000-000")
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("acme-vdc-vapp-000")) })
				return id
			},
			want: gone.Verdict{State: gone.Gone, Counts: true},
		},
		{
			name:  "but not without another one",
			vApps: 1,
			do: func(s *site) string {
				id := s.providerID("acme-vdc-vapp-000-000")
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("acme-vdc-vapp-000")) })
				return id
			},
			want: gone.Verdict{Reason: gone.HomeHidden},
		},
		{
			name:  "a user who may not read VMs proves nothing",
			vApps: 2,
			do: func(s *site) string {
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: 403})
				return s.providerID("acme-vdc-vapp-000-000")
			},
			want: gone.Verdict{Reason: gone.Listed},
		},
		{
			name:  "a user who does not see them either proves nothing",
			vApps: 2,
			do: func(s *site) string {
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: 403})
				return lost(s)
			},
			want: gone.Verdict{Reason: gone.HomeHidden},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, tt.vApps, 2)
			m := s.machines(inVApps("acme-vdc-vapp-000", "acme-vdc-vapp-001"))
			_, err := m.Snapshot(t.Context(), time.Minute)
			s.Expect(err).NotTo(HaveOccurred())

			_, err = m.Get(t.Context(), tt.do(s))

			absence, ok := errors.AsType[*cpi.AbsenceError](err)
			s.Expect(ok).To(BeTrue(), "%v", err)
			subject := gone.Subject{
				Missing:  gone.Missing{Since: s.clock.Now().Add(-time.Hour)},
				Evidence: absence.Evidence,
			}
			s.Expect(gone.Decide(s.clock.Now(), subject, &gone.Site{})).To(Equal(tt.want))
		})
	}
}

func TestAMachineInAnotherVAppIsThere(t *testing.T) {
	s := newSite(t, 1, 2)
	m := s.machines(inVApps("acme-vdc-vapp-000"))
	_, err := m.Snapshot(t.Context(), time.Minute)
	s.Expect(err).NotTo(HaveOccurred())

	s.sim.Edit(func(e *vcdsim.Editor) {
		e.MoveVM(e.VM("acme-vdc-vapp-000-000"), e.CopyVApp(e.VApp("acme-vdc-vapp-000"), "other"))
	})

	s.Expect(m.Get(t.Context(), s.providerID("acme-vdc-vapp-000-000"))).To(HaveField("Name", "acme-vdc-vapp-000-000"))
}

func TestAnOutageProvesNothing(t *testing.T) {
	s := newSite(t, 1, 2)
	m := s.machines(inVApps("acme-vdc-vapp-000"))
	id := s.providerID("acme-vdc-vapp-000-000")
	_, err := m.Snapshot(t.Context(), time.Minute)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Close()).To(Succeed())

	_, err = m.Get(t.Context(), id)

	_, absent := errors.AsType[*cpi.AbsenceError](err)
	s.Expect(err).To(HaveOccurred())
	s.Expect(absent).To(BeFalse())
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	_, err = m.Snapshot(t.Context(), time.Minute)
	s.Expect(err).To(HaveOccurred())
}

func TestCredentialsThatChangeEndTheOldSession(t *testing.T) {
	s := newSite(t, 1, 2)
	m := s.machines(inVApps("acme-vdc-vapp-000"))
	_, err := m.Snapshot(t.Context(), 0)
	s.Expect(err).NotTo(HaveOccurred())

	s.keys = vcd.Credentials{Username: "ccm", Password: "wrong"}
	s.version = "2"
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	_, err = m.Snapshot(t.Context(), 0)
	s.Expect(err).To(MatchError(vcd.ErrUnauthorized))
	s.Expect(err.Error()).NotTo(ContainSubstring("wrong"))

	s.keys = vcd.Credentials{Username: "ccm", APIToken: "ccm-api-token"}
	s.version = "3"
	_, err = m.Snapshot(t.Context(), 0)
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func() int { return s.sim.Counters()["DELETE /api/session"] }).Should(Equal(1))
}

// TestAVDCThatDoesNotExistIsNamedAndHeals: the original crashed.
func TestAVDCThatDoesNotExistIsNamedAndHeals(t *testing.T) {
	s := newSite(t, 1, 1)
	machines := s.machines(func(o *MachineOptions) { o.VDCs = []string{"later"} })

	for range 3 {
		_, err := machines.Snapshot(t.Context(), 0)
		s.Expect(err).To(MatchError(And(ContainSubstring(`"later"`), ContainSubstring("does not exist"))))
		s.clock.Step(time.Minute)
	}

	s.sim.Edit(func(e *vcdsim.Editor) { e.VDC("acme-vdc").Name = "later" })
	s.Eventually(func() error {
		s.clock.Step(time.Minute)
		_, err := machines.Snapshot(t.Context(), 0)
		return err
	}).Should(Succeed())
}
