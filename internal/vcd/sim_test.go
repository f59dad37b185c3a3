// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestATemplateWithoutVMIsRejected(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)

	_, err := to.session(t).Templates.FindTemplate(t.Context(), "kubernetes", "no-vm")

	g.Expect(err).To(MatchError(vcd.ErrInvalid))
	g.Expect(err.Error()).To(
		Equal(`template "no-vm" in catalog kubernetes has no VM: upload it again, or use another template`))
}

func TestLookupsAreCachedAndRefreshed(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	ctx := t.Context()
	s := to.session(t)
	p := to.plan(t, s, "x")
	to.sim.ResetCounters()

	to.plan(t, s, "x")
	_, counts := to.calls()
	g.Expect(counts).To(BeEmpty(), "all lookups are cached")

	_, err := s.VDCs.FindSizingPolicy(ctx, p.vdc, "huge")
	g.Expect(err).To(MatchError(vcd.ErrNotFound))
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.Model.Policies = append(e.Model.Policies, vcdsim.ComputePolicy{Name: "huge", CPUs: 64})
		for i := range e.Model.Orgs {
			for j := range e.Model.Orgs[i].VDCs {
				e.Model.Orgs[i].VDCs[j].Policies = append(e.Model.Orgs[i].VDCs[j].Policies, "huge")
			}
		}
	})
	g.Expect(s.VDCs.FindSizingPolicy(ctx, p.vdc, "huge")).To(HaveField("CPUs", int64(64)))

	to.sim.Edit(func(e *vcdsim.Editor) { e.DeleteTemplate(to.template) })
	s.Refresh()
	_, err = s.Templates.FindTemplate(ctx, to.catalog, to.template)
	g.Expect(err).To(MatchError(vcd.ErrNotFound))
}

// The budget for one machine is 10 calls with a warm cache and 22 with a cold one. The controllers count their own
// calls.
func TestRequestBudgetOfAMachine(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	ctx := t.Context()

	s := to.session(t)
	p := to.plan(t, s, "cost-0")
	for range 2 { // a machine reads the IDs that its cluster found by name
		g.Expect(s.VDCs.FindVDC(ctx, p.vdc.ID)).To(Equal(p.vdc))
		g.Expect(s.Networks.FindNetwork(ctx, p.vdc, p.network.ID)).To(Equal(p.network))
	}
	_, err := s.VApps.FindVApp(ctx, p.vdc, "cost")
	g.Expect(err).To(MatchError(vcd.ErrNotFound))
	vApp, task, err := s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{
		Name:     "cost",
		Networks: []vcd.Ref{p.network.Ref},
		VMs:      []vcd.VMSpec{p.spec},
	})
	await(t, s, task, err)
	finish(t, s, p, "cost-0")
	total, counts := to.calls()
	g.Expect(total).To(BeNumerically("<=", 16), "cold: %v", counts)
	g.Expect(counts).To(HaveKeyWithValue("POST /cloudapi/1.0.0/sessions", 1))
	g.Expect(counts).To(HaveKeyWithValue("GET /api/query type=orgVdc", 1))
	g.Expect(counts).To(HaveKeyWithValue("GET /cloudapi/1.0.0/orgVdcNetworks", 1))
	t.Logf("cold: %d calls: %v", total, counts)

	to.sim.ResetCounters()
	p = to.plan(t, s, "cost-1")
	found, err := s.VApps.FindVApp(ctx, p.vdc, "cost")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.ID).To(Equal(vApp.ID))
	task, err = s.VApps.AddVMs(ctx, vApp.ID, []vcd.VMSpec{p.spec})
	await(t, s, task, err)
	finish(t, s, p, "cost-1")
	total, counts = to.calls()
	g.Expect(total).To(BeNumerically("<=", 7), "warm: %v", counts)
	t.Logf("warm: %d calls: %v", total, counts)
}

// finish follows a newly created VM until it has its address.
func finish(t *testing.T, s *vcd.Session, p plan, name string) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	s.Inventory.Invalidate(p.vdc, "cost")
	rows, err := s.Inventory.VMs(ctx, p.vdc, "cost", 0)
	g.Expect(err).NotTo(HaveOccurred())
	row := rows[len(rows)-1]
	g.Expect(row.Name).To(Equal(name))
	vm, err := s.VMs.VM(ctx, row.ID) // the metadata contains the MAC addresses
	g.Expect(err).NotTo(HaveOccurred())
	task, err := s.VMs.ReconfigureVM(ctx, vm.ID, vcd.VMChange{
		ExtraConfig: map[string]string{"guestinfo.metadata": vm.NICs[0].MAC},
	})
	await(t, s, task, err)
	task, err = s.VMs.PowerOn(ctx, vm.ID)
	await(t, s, task, err)
	vm, err = s.VMs.VM(ctx, vm.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(vm.NICs[0].Address).NotTo(BeEmpty())
}

func TestForeignExtraConfigSurvives(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	ctx := t.Context()
	s := to.session(t)
	p := to.plan(t, s, "foreign")
	vApp, task, err := s.VApps.ComposeVApp(ctx, p.vdc,
		vcd.VAppSpec{Name: "foreign", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	await(t, s, task, err)
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.VM("foreign").ExtraConfig = map[string]string{"their.key": "1 < 2 & 3", "ours": "old"}
	})
	vApp, err = s.VApps.VApp(ctx, vApp.ID)
	g.Expect(err).NotTo(HaveOccurred())

	task, err = s.VMs.ReconfigureVM(ctx, vApp.VMs[0].ID, vcd.VMChange{ExtraConfig: map[string]string{"ours": "new"}})
	await(t, s, task, err)

	vm, err := s.VMs.VM(ctx, vApp.VMs[0].ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(vm.ExtraConfig).To(Equal(map[string]string{"their.key": "1 < 2 & 3", "ours": "new"}))
}

func TestABusyVMIsReportedAsBusy(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	to.sim.Faults().Add(vcdsim.Fault{
		Operation: "POST /api/vApp/vapp/action/recomposeVApp",
		Count:     1,
		Status:    400,
		Code:      "BUSY_ENTITY",
		Message:   "The entity Ref: com.vmware.vcloud.entity.vm:1 is busy completing an operation VAPP_UPDATE_VM. VAPP_UPDATE_VM(com.vmware.vcloud.entity.task:2)",
	})
	s := to.session(t)
	p := to.plan(t, s, "busy")
	vApp, task, err := s.VApps.ComposeVApp(t.Context(), p.vdc, vcd.VAppSpec{Name: "busy"})
	await(t, s, task, err)

	_, err = s.VApps.AddVMs(t.Context(), vApp.ID, []vcd.VMSpec{p.spec})

	g.Expect(err).To(MatchError(vcd.ErrBusy))
	g.Expect(err.Error()).NotTo(ContainSubstring("entity.task"))
}

func TestAFailedTaskReturnsItsReason(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	s := to.session(t)
	p := to.plan(t, s, "failing")
	to.sim.Faults().Add(vcdsim.Fault{FailTask: true, Count: 1, Message: "The host is out of memory."})
	_, task, err := s.VApps.ComposeVApp(t.Context(), p.vdc,
		vcd.VAppSpec{Name: "failing", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	g.Expect(err).NotTo(HaveOccurred())
	woken := make(chan struct{})

	s.Tasks.Follow("m", task, func() { close(woken) })

	g.Eventually(woken).Should(BeClosed())
	ended, _ := s.Tasks.Task("m")
	g.Expect(ended.State).To(Equal(vcd.TaskFailed))
	g.Expect(ended.Err).To(MatchError(ContainSubstring("The host is out of memory.")))
}

func TestSessionsSurviveExpiry(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	s := to.session(t)
	to.sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })

	_, err := s.VDCs.FindVDC(t.Context(), to.vdc)

	g.Expect(err).NotTo(HaveOccurred())
}

func TestLoginWithAnAPIToken(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	to.config.Credentials = vcd.Credentials{APIToken: "capvcd-api-token"}

	_, err := to.session(t).VDCs.FindVDC(t.Context(), to.vdc)
	g.Expect(err).NotTo(HaveOccurred())

	to.config.Credentials.APIToken = "wrong"
	for range 2 {
		_, err = to.pool.Session(t.Context(), to.config)
		g.Expect(err).To(MatchError(vcd.ErrUnauthorized))
	}
	_, counts := to.calls()
	g.Expect(counts).To(HaveKeyWithValue("POST /oauth/tenant/token", 2))
}

func TestAProviderWorksInATenant(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	to.config.Credentials = vcd.Credentials{Username: "System/administrator", Password: "password"}
	s := to.session(t)

	p := to.plan(t, s, "provider")
	vApp, task, err := s.VApps.ComposeVApp(t.Context(), p.vdc,
		vcd.VAppSpec{Name: "provider", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	await(t, s, task, err)

	rows, err := s.Inventory.VMs(t.Context(), p.vdc, "provider", 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rows).To(HaveLen(1))
	g.Expect(s.VApps.FindVApp(t.Context(), p.vdc, "provider")).To(HaveField("ID", vApp.ID))
}

func TestAForgottenNetworkIsLookedUpAgain(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	s := to.session(t)
	p := to.plan(t, s, "x")
	to.sim.ResetCounters()

	s.Networks.ForgetNetwork(p.vdc, p.network.Ref)

	for _, name := range []string{p.network.Name, p.network.ID} {
		g.Expect(s.Networks.FindNetwork(t.Context(), p.vdc, name)).To(Equal(p.network))
	}
	g.Expect(to.sim.Counters()).To(HaveKeyWithValue("GET /cloudapi/1.0.0/orgVdcNetworks", 1))
}
