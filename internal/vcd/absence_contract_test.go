// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// lostSite has vApps "own", with VMs lost-0 and lost-1, and "other", with VM lost-2.
type lostSite struct {
	*target

	session    *vcd.Session
	vdc        vcd.VDC
	own, other vcd.VApp
}

func newLostSite(t *testing.T, mods ...func(*vcdsim.Config)) *lostSite {
	t.Helper()
	to := newTarget(t, mods...)
	simOnly(t, to)
	s := &lostSite{target: to, session: to.session(t)}
	s.own = s.compose(t, "own", "lost-0", "lost-1")
	s.other = s.compose(t, "other", "lost-2")
	return s
}

func (s *lostSite) compose(t *testing.T, name string, vms ...string) vcd.VApp {
	t.Helper()
	g := NewWithT(t)
	spec := vcd.VAppSpec{Name: name, Description: vcd.Marker{Cluster: "c1"}.String()}
	for _, vm := range vms {
		p := s.plan(t, s.session, vm)
		s.vdc = p.vdc
		spec.Networks = []vcd.Ref{p.network.Ref}
		spec.VMs = append(spec.VMs, p.spec)
	}
	_, task, err := s.session.VApps.ComposeVApp(t.Context(), s.vdc, spec)
	await(t, s.session, task, err)
	vApp, err := s.session.VApps.FindVApp(t.Context(), s.vdc, name)
	g.Expect(err).NotTo(HaveOccurred())
	return vApp
}

// hide makes a vApp invisible to the user.
func (s *lostSite) hide(name string) {
	s.sim.Edit(func(e *vcdsim.Editor) { e.SetOwner(e.VApp(name), "admin") })
}

func TestEvidenceOfALostVM(t *testing.T) {
	vanish := func(_ *testing.T, s *lostSite) {
		s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("lost-0")) })
	}
	tests := []struct {
		name string
		do   func(*testing.T, *lostSite)
		lost func(*lostSite, *vcd.Lost)
		want vcd.Absence
	}{
		{name: "an existing VM", do: func(*testing.T, *lostSite) {}, want: vcd.Absence{Shown: true}},
		{name: "one that vanished from its vApp", do: vanish, want: vcd.Absence{ScopeShown: true, HomeShown: true}},
		{
			name: "if its vApp is known by name and marker",
			do:   vanish,
			lost: func(_ *lostSite, l *vcd.Lost) {
				l.VApp = ""
				l.VAppName = "own"
			},
			want: vcd.Absence{ScopeShown: true, HomeShown: true},
		},
		{
			name: "but not if another cluster's vApp has the name",
			do:   vanish,
			lost: func(_ *lostSite, l *vcd.Lost) {
				l.VApp = ""
				l.VAppName = "own"
				l.Cluster = "c2"
			},
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "if its vApp is unknown",
			do:   vanish,
			lost: func(_ *lostSite, l *vcd.Lost) { l.VApp = "" },
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "one whose vApp is no longer shared, although another is",
			do:   func(_ *testing.T, s *lostSite) { s.hide("own") },
			lost: func(s *lostSite, l *vcd.Lost) { l.Siblings = []string{s.other.VMs[0].ID} },
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "with all other objects of the cluster",
			do:   func(_ *testing.T, s *lostSite) { s.hide("own") },
			want: vcd.Absence{ScopeShown: true, SiblingsHidden: true},
		},
		{
			name: "a deleted VM",
			do: func(t *testing.T, s *lostSite) {
				t.Helper()
				task, err := s.session.VMs.DeleteVM(t.Context(), s.own.VMs[0].ID)
				await(t, s.session, task, err)
			},
			want: vcd.Absence{ScopeShown: true, HomeShown: true, Logged: true, Deleted: true},
		},
		{
			name: "one whose vApp was",
			do: func(t *testing.T, s *lostSite) {
				t.Helper()
				removeVApp(t, s.session, s.own.ID)
			},
			want: vcd.Absence{ScopeShown: true, SiblingsHidden: true, Deleted: true},
		},
		{
			name: "an unreadable VM",
			do: func(_ *testing.T, s *lostSite) {
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: http.StatusForbidden})
			},
			want: vcd.Absence{Listed: true},
		},
		{
			name: "a VM in an invisible VDC",
			do: func(t *testing.T, s *lostSite) {
				t.Helper()
				vanish(t, s)
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=orgVdc", Status: http.StatusForbidden})
			},
			want: vcd.Absence{HomeShown: true},
		},
		{
			name: "if tasks are invisible",
			do: func(t *testing.T, s *lostSite) {
				t.Helper()
				vanish(t, s)
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=task", Status: http.StatusForbidden})
			},
			want: vcd.Absence{ScopeShown: true, HomeShown: true},
		},
		{
			name: "a VM that was never recorded",
			do:   func(*testing.T, *lostSite) {},
			lost: func(_ *lostSite, l *vcd.Lost) { l.ID = "" },
			want: vcd.Absence{ScopeShown: true, HomeShown: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newLostSite(t)
			lost := vcd.Lost{
				ID:       s.own.VMs[0].ID,
				VDCs:     []string{s.vdc.ID},
				VApp:     s.own.ID,
				Cluster:  "c1",
				Siblings: []string{s.own.VMs[1].ID},
			}
			if tt.lost != nil {
				tt.lost(s, &lost)
			}
			tt.do(t, s)

			vm, absence, err := s.session.FindLost(t.Context(), lost)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(absence).To(Equal(tt.want))
			want := ""
			if absence.Shown {
				want = lost.ID
			}
			g.Expect(vm.ID).To(Equal(want))
		})
	}
}

func TestEvidenceOfALostVApp(t *testing.T) {
	tests := []struct {
		name string
		do   func(*testing.T, *lostSite)
		want vcd.Absence
	}{
		{name: "an existing vApp", do: func(*testing.T, *lostSite) {}, want: vcd.Absence{Shown: true}},
		{
			name: "one that is no longer shared",
			do:   func(_ *testing.T, s *lostSite) { s.hide("own") },
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "a vanished vApp",
			do: func(_ *testing.T, s *lostSite) {
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("own")) })
			},
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "an unreadable vApp",
			do: func(_ *testing.T, s *lostSite) {
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: http.StatusForbidden})
			},
			want: vcd.Absence{Listed: true},
		},
		{
			name: "a deleted vApp",
			do: func(t *testing.T, s *lostSite) {
				t.Helper()
				removeVApp(t, s.session, s.own.ID)
			},
			want: vcd.Absence{ScopeShown: true, Deleted: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newLostSite(t)
			tt.do(t, s)

			absence, err := s.session.LostVApp(t.Context(), s.vdc, s.own.ID)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(absence).To(Equal(tt.want))
		})
	}
}

// TestEvidenceForAnAdministrator covers a user who can see all vApps and VDCs of the organization.
func TestEvidenceForAnAdministrator(t *testing.T) {
	tests := []struct {
		name string
		do   func(*lostSite)
		want vcd.Absence
	}{
		{
			name: "a vanished vApp",
			do: func(s *lostSite) {
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("own")) })
			},
			want: vcd.Absence{ScopeShown: true, SeesAll: true},
		},
		{
			name: "with all other vApps",
			do: func(s *lostSite) {
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("own")); e.DeleteVApp(e.VApp("other")) })
			},
			want: vcd.Absence{ScopeShown: true},
		},
		{
			name: "with its VDC",
			do: func(s *lostSite) {
				s.sim.Edit(func(e *vcdsim.Editor) {
					e.DeleteVApp(e.VApp("own"))
					e.Model.Orgs[1].VDCs = e.Model.Orgs[1].VDCs[1:]
				})
			},
			want: vcd.Absence{ScopeGone: true},
		},
		{
			name: "while VDCs must not be listed",
			do: func(s *lostSite) {
				s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("own")) })
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=orgVdc", Status: http.StatusForbidden})
			},
			want: vcd.Absence{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newLostSite(t)
			tt.do(s)
			s.config.Credentials.Username = "admin"

			absence, err := s.target.session(t).LostVApp(t.Context(), s.vdc, s.own.ID)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(absence).To(Equal(tt.want))
		})
	}
}

// withSecondGateway adds an edge gateway to the first VDC.
func withSecondGateway(c *vcdsim.Config) {
	vdc := &c.Model.Orgs[1].VDCs[0]
	second := vdc.EdgeGateways[0]
	second.Name = "second"
	second.Uplinks = nil
	vdc.EdgeGateways = append(slices.Clone(vdc.EdgeGateways), second)
}

func TestEvidenceOfALostGateway(t *testing.T) {
	const list = "GET /cloudapi/1.0.0/edgeGateways"
	remove := func(s *lostSite, id string) {
		s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteGateway(id) })
	}
	tests := []struct {
		name string
		user string
		do   func(*lostSite, string)
		want vcd.Absence
	}{
		{name: "an existing gateway", user: "capvcd", do: func(*lostSite, string) {}, want: vcd.Absence{Shown: true}},
		{
			name: "a deleted gateway, while another is visible",
			user: "capvcd",
			do:   remove,
			want: vcd.Absence{ScopeShown: true, HomeShown: true},
		},
		{
			name: "a gateway of which VCD shows none to the user",
			user: "capvcd",
			do: func(s *lostSite, _ string) {
				s.sim.Faults().Add(vcdsim.Fault{Operation: list + "*", Status: http.StatusForbidden})
			},
			want: vcd.Absence{ScopeShown: true},
		},
		{name: "a gateway that was deleted with all others", user: "capvcd", do: removeAll, want: vcd.Absence{ScopeShown: true}},
		{
			name: "a gateway that was deleted with all others, and the user can see all",
			user: "admin",
			do:   removeAll,
			want: vcd.Absence{ScopeShown: true, HomeShown: true},
		},
		{
			name: "a gateway in an invisible VDC",
			user: "capvcd",
			do: func(s *lostSite, id string) {
				remove(s, id)
				s.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=orgVdc", Status: http.StatusForbidden})
			},
			want: vcd.Absence{HomeShown: true},
		},
		{
			name: "a listed but unreadable gateway",
			user: "capvcd",
			do: func(s *lostSite, _ string) {
				s.sim.Faults().Add(vcdsim.Fault{Operation: list, Status: http.StatusForbidden, Count: 1})
			},
			want: vcd.Absence{Listed: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newLostSite(t, withSecondGateway)
			id := vcdsim.URN("gateway", s.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
			tt.do(s, id)
			s.config.Credentials.Username = tt.user

			absence, err := s.target.session(t).LostGateway(t.Context(), s.vdc, id)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(absence).To(Equal(tt.want))
		})
	}
}

// removeAll removes all edge gateways of the organization.
func removeAll(s *lostSite, _ string) {
	for _, gateway := range s.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways {
		s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteGateway(vcdsim.URN("gateway", gateway.ID)) })
	}
}

func TestAMissingResponseIsNoEvidence(t *testing.T) {
	g := NewWithT(t)
	s := newLostSite(t)
	s.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("lost-0")) })
	for _, operation := range []string{
		"GET /api/vApp/*", "GET /api/query type=vm", "GET /api/query type=orgVdc",
		"GET /api/query type=task",
	} {
		s.sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: http.StatusBadGateway})

		_, _, err := s.session.FindLost(t.Context(),
			vcd.Lost{ID: s.own.VMs[0].ID, VDCs: []string{s.vdc.ID}, VApp: s.own.ID})

		g.Expect(err).To(MatchError(vcd.ErrUnavailable), operation)
		s.sim.Faults().Clear()
	}
}
