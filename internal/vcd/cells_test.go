// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// newCells returns a target of two cells behind a load balancer. The client only knows the load balancer's address.
func newCells(t *testing.T, mods ...func(*vcdsim.Config)) *target {
	t.Helper()
	config := vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant, Seed: 1, Cells: 2}
	return newSimulated(t, config,
		vcd.PoolOptions{
			TaskPoll:          5 * time.Millisecond,
			LookupTTL:         time.Nanosecond,
			RequestsPerSecond: 1000,
			Burst:             1000,
		}, mods...)
}

// newSimulated returns a target on its own simulator.
func newSimulated(t *testing.T, config vcdsim.Config, opts vcd.PoolOptions, mods ...func(*vcdsim.Config)) *target {
	t.Helper()
	g := NewWithT(t)
	for _, mod := range mods {
		mod(&config)
	}
	sim, err := vcdsim.New(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { g.Expect(sim.Close()).To(Succeed()) })
	to := &target{
		sim:       sim,
		vdc:       "acme-vdc",
		network:   "nodes",
		catalog:   "kubernetes",
		template:  "ubuntu-2404-kube-v1.36.3",
		sizing:    "small",
		placement: "rack-a",
		config: vcd.Config{
			Site:        sim.URL(),
			Org:         "acme",
			CABundle:    sim.CA(),
			Version:     "1",
			Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
		},
	}
	to.pool = vcd.NewPool(opts)
	t.Cleanup(func() { g.Expect(to.pool.Close(context.WithoutCancel(t.Context()))).To(Succeed()) })
	return to
}

// taskTime is longer than tasks take.
const taskTime = 5 * time.Minute

// slowly makes tasks, and nothing else, wait until the returned clock is advanced.
func slowly(clock *vcdsim.SimClock) func(*vcdsim.Config) {
	return func(c *vcdsim.Config) {
		c.Profile = vcdsim.Recorded
		c.Clock = clock
	}
}

// logins returns the number of successful logins.
func (to *target) logins() int {
	n := 0
	for _, r := range to.sim.Requests() {
		if r.Operation == "POST /cloudapi/1.0.0/sessions" && r.Status == http.StatusOK {
			n++
		}
	}
	return n
}

func TestCallsContinueWhileCellsChange(t *testing.T) {
	tests := []struct {
		name    string
		change  func(g *WithT, to *target, cell *vcdsim.Cell)
		refused bool // a call may be rejected, because the load balancer has not noticed yet
		logins  int  // at most
	}{
		{name: "a cell is stopped", change: func(_ *WithT, _ *target, c *vcdsim.Cell) { c.Stop() }, logins: 2},
		{
			name:    "a cell crashes and the load balancer does not notice",
			change:  func(_ *WithT, _ *target, c *vcdsim.Cell) { c.Crash() },
			refused: true,
			logins:  2,
		},
		{name: "a cell is restarted", change: func(_ *WithT, _ *target, c *vcdsim.Cell) { c.Restart(0) }, logins: 2},
		{name: "a cell is in maintenance", change: func(_ *WithT, _ *target, c *vcdsim.Cell) { c.Maintain(true) }, refused: true, logins: 1},
		{
			name:   "a cell is upgraded",
			change: func(g *WithT, _ *target, c *vcdsim.Cell) { g.Expect(c.Upgrade(vcdsim.Version106)).To(Succeed()) },
			logins: 1,
		},
		{
			name: "the load balancer has a new certificate",
			change: func(g *WithT, to *target, _ *vcdsim.Cell) {
				g.Expect(to.sim.RenewCertificate(false)).To(Succeed())
			},
			logins: 1,
		},
		{
			name:   "cells have new certificates",
			change: func(g *WithT, _ *target, c *vcdsim.Cell) { g.Expect(c.RenewCertificate(true)).To(Succeed()) },
			logins: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			to := newCells(t, func(c *vcdsim.Config) { c.Version = vcdsim.Version104 })
			s := to.session(t)
			p := to.plan(t, s, "x")
			for _, cell := range to.sim.Cells() {
				tt.change(g, to, cell)
				for range 6 {
					_, err := s.Inventory.VMs(t.Context(), p.vdc, "x", 0)
					if tt.refused && err != nil {
						g.Expect(err).To(MatchError(vcd.ErrUnavailable))
						continue
					}
					g.Expect(err).NotTo(HaveOccurred())
				}
				cell.Maintain(false)
				cell.Start()
			}
			g.Eventually(func() error {
				_, err := s.Inventory.VMs(t.Context(), p.vdc, "x", 0)
				return err
			}, testtime.Patience, "20ms").Should(Succeed())
			g.Expect(to.logins()).To(BeNumerically("<=", 2*tt.logins))
		})
	}
}

func TestTasksAreFollowedWhileCellsChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(to *target, cell *vcdsim.Cell)
	}{
		{"cells are restarted one by one", func(_ *target, c *vcdsim.Cell) { c.Restart(0) }},
		{"cells enter maintenance one by one", func(_ *target, c *vcdsim.Cell) { c.Maintain(true) }},
		{"cells crash one by one", func(_ *target, c *vcdsim.Cell) { c.Crash() }},
		{
			"sessions end",
			func(to *target, _ *vcdsim.Cell) {
				to.sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			clock := vcdsim.NewManualClock(time.Now())
			to := newCells(t, slowly(clock), func(c *vcdsim.Config) {
				assume := vcdsim.DefaultAssumptions()
				assume.CellStopAbortsTasks = false
				c.Assumptions = &assume
			})
			s, task := to.composing(t)
			woken := make(chan struct{})
			s.Tasks.Follow("m", task, func() { close(woken) })

			for _, cell := range to.sim.Cells() {
				tt.change(to, cell)
				requestCount := to.requestCount()
				g.Eventually(to.requestCount, testtime.Patience, "1ms").Should(BeNumerically(">", requestCount+1),
					"it is requested again")
				cell.Maintain(false)
				cell.Start()
			}
			clock.Advance(taskTime)

			g.Eventually(woken, testtime.Patience, "5ms").Should(BeClosed())
			ended, _ := s.Tasks.Task("m")
			g.Expect(ended.State).To(Equal(vcd.TaskSucceeded), "%v", ended.Err)
			g.Expect(to.logins()).To(BeNumerically("<=", 3), "one at first, and one per cell")
			g.Expect(to.sim.State().VApps).To(HaveLen(1))
		})
	}
}

func TestATaskThatEndedWithItsCellIsReported(t *testing.T) {
	g := NewWithT(t)
	clock := vcdsim.NewManualClock(time.Now())
	to := newCells(t, slowly(clock))
	s, task := to.composing(t)
	woken := make(chan struct{})
	s.Tasks.Follow("m", task, func() { close(woken) })

	for _, cell := range to.sim.Cells() {
		cell.Restart(0)
	}

	g.Eventually(woken, testtime.Patience, "5ms").Should(BeClosed())
	ended, _ := s.Tasks.Task("m")
	g.Expect(ended.State).To(Equal(vcd.TaskFailed))
	g.Expect(ended.Err).To(MatchError(ContainSubstring("its cell was stopped")))
}

// composing starts the creation of a vApp with a VM.
func (to *target) composing(t *testing.T) (*vcd.Session, vcd.Task) {
	t.Helper()
	s := to.session(t)
	p := to.plan(t, s, "x")
	_, task, err := s.VApps.ComposeVApp(t.Context(), p.vdc,
		vcd.VAppSpec{Name: "x", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s, task
}

// requestCount counts the requests at the load balancer, with or without a response.
func (to *target) requestCount() int { return len(to.sim.Requests()) }

func TestTheAddressInHrefsIsNeverContacted(t *testing.T) {
	g := NewWithT(t)
	var strayed atomic.Int32
	public := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(public.Close)
	to := newCells(t, func(c *vcdsim.Config) { c.PublicURL = public.URL })
	s := to.session(t)
	p := to.plan(t, s, "cost-0")

	vApp, task, err := s.VApps.ComposeVApp(t.Context(), p.vdc,
		vcd.VAppSpec{Name: "cost", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	await(t, s, task, err)
	finish(t, s, p, "cost-0")
	vApp, err = s.VApps.VApp(t.Context(), vApp.ID)
	g.Expect(err).NotTo(HaveOccurred())
	for _, remove := range []func(context.Context, string) (vcd.Task, error){s.VMs.PowerOff, s.VMs.DeleteVM} {
		task, err = remove(t.Context(), vApp.VMs[0].ID)
		await(t, s, task, err)
	}
	removeVApp(t, s, vApp.ID)

	g.Expect(to.sim.State().VApps).To(BeEmpty())
	g.Expect(strayed.Load()).To(BeZero())
	g.Expect(to.logins()).To(Equal(1))
}

func TestCredentialsAreReplacedWhileATaskIsFollowed(t *testing.T) {
	tests := []struct {
		name     string
		old, new vcd.Credentials
	}{
		{
			name: "a password",
			old:  vcd.Credentials{Username: "capvcd", Password: "password"},
			new:  vcd.Credentials{Username: "capvcd", Password: "fresh"},
		},
		{name: "an API token", old: vcd.Credentials{APIToken: "capvcd-api-token"}, new: vcd.Credentials{APIToken: "fresh"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			to := newCells(t, slowly(vcdsim.NewManualClock(time.Now())))
			to.config.Credentials = tt.old
			old, task := to.composing(t)
			woken := make(chan struct{})
			old.Tasks.Follow("m", task, func() { close(woken) })

			to.sim.Edit(func(e *vcdsim.Editor) {
				e.SetPassword("acme", "capvcd", "fresh")
				e.SetAPITokens("acme", "capvcd", "fresh")
				e.ExpireSessions()
			})

			g.Eventually(woken, testtime.Patience, "5ms").Should(BeClosed(), "callers who follow the task look it up themselves")
			unknown, _ := old.Tasks.Task("m")
			g.Expect(unknown.State).To(Equal(vcd.TaskUnknown))
			_, err := old.VDCs.FindVDC(t.Context(), to.vdc)
			g.Expect(err).To(MatchError(vcd.ErrUnauthorized))
			g.Expect(to.refusedLogins()).To(Equal(1), "the old credentials are tried once")

			to.config.Credentials = tt.new
			to.config.Version = "2"
			vdc, err := to.session(t).VDCs.FindVDC(t.Context(), to.vdc)
			g.Expect(err).NotTo(HaveOccurred())
			vApp, err := to.session(t).VApps.FindVApp(t.Context(), vdc, "x")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(vApp.Tasks).To(ConsistOf(HaveField("ID", task.ID)), "the new session finds the task")
		})
	}
}

// refusedLogins returns the number of rejected logins.
func (to *target) refusedLogins() int {
	n := 0
	for _, r := range to.sim.Requests() {
		if r.Method == http.MethodPost &&
			(r.Operation == "POST /cloudapi/1.0.0/sessions" || r.Operation == "POST /oauth/tenant/token") &&
			r.Status >= 400 {
			n++
		}
	}
	return n
}

func TestSessionsOfUnusedCredentialsAreLoggedOut(t *testing.T) {
	g := NewWithT(t)
	to := newCells(t, slowly(vcdsim.NewManualClock(time.Now())))
	to.session(t)
	provider := to.config
	provider.Credentials = vcd.Credentials{Username: "System/administrator", Password: "password"}
	for _, org := range []string{"acme", "System"} {
		provider.Org = org
		_, err := to.pool.Session(t.Context(), provider)
		g.Expect(err).NotTo(HaveOccurred())
	}
	users := func() []string {
		var names []string
		for _, s := range to.sim.State().Sessions {
			names = append(names, s.User)
		}
		return names
	}
	g.Expect(users()).To(ConsistOf("capvcd", "administrator", "administrator"))

	provider.Org = ""
	provider.Version = "another"
	to.pool.Logout(t.Context(), provider)

	g.Eventually(users, testtime.Patience, "5ms").Should(ConsistOf("capvcd"), "in any organization")

	s, task := to.composing(t)
	s.Tasks.Follow("m", task, nil)
	to.pool.Logout(t.Context(), to.config)
	g.Expect(to.session(t)).To(BeIdenticalTo(s), "a caller waits for a task")
	s.Tasks.Forget("m")
	to.pool.Logout(t.Context(), to.config)
	g.Eventually(users, testtime.Patience, "5ms").Should(BeEmpty())
	g.Expect(to.session(t)).NotTo(BeIdenticalTo(s), "callers log in again when needed")
}
