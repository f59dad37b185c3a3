// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestLifeOfAMachine(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newTarget(t)
	s := to.session(t)
	p := to.plan(t, s, "contract-0")
	marker := vcd.Marker{Cluster: "c1"}.String()

	created, task, err := s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{
		Name:        "contract",
		Description: marker,
		Networks:    []vcd.Ref{p.network.Ref},
		VMs:         []vcd.VMSpec{p.spec},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.ID).To(HavePrefix("urn:vcloud:vapp:"))
	await(t, s, task, nil)

	vApp, err := s.VApps.FindVApp(ctx, p.vdc, "contract")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(vApp.ID).To(Equal(created.ID))
	g.Expect(vApp.Description).To(Equal(marker))
	g.Expect(vApp.Networks).To(ConsistOf(to.network))
	g.Expect(vApp.RuntimeLease).To(BeZero())
	g.Expect(vApp.StorageLease).To(BeZero())
	g.Expect(vApp.VMs).To(HaveLen(1))
	g.Expect(vApp.Tasks).To(BeEmpty())
	g.Expect(vApp.Deployed).To(BeFalse())

	rows, err := s.Inventory.VMs(ctx, p.vdc, "contract", 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rows).To(HaveLen(1))
	g.Expect(rows[0]).To(Equal(vcd.VMRecord{
		Ref:               vApp.VMs[0],
		VApp:              vApp.Ref,
		VDC:               p.vdc.Ref,
		Status:            vcd.StatusPoweredOff,
		PrimaryAddress:    rows[0].PrimaryAddress,
		CPUs:              rows[0].CPUs,
		MemoryMiB:         rows[0].MemoryMiB,
		StorageMiB:        rows[0].StorageMiB,
		StorageProfile:    rows[0].StorageProfile,
		SizingPolicyID:    rows[0].SizingPolicyID,
		PlacementPolicyID: rows[0].PlacementPolicyID,
		PrimaryNetwork:    rows[0].PrimaryNetwork,
	}))
	id := rows[0].ID

	created0, err := s.VMs.VM(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{
		rows[0].CPUs, rows[0].MemoryMiB,
		rows[0].StorageProfile,
	}).To(Equal([]any{created0.CPUs, created0.MemoryMiB, created0.StorageProfile.Name}))
	g.Expect(rows[0].SizingPolicyID).To(BeElementOf("", created0.SizingPolicyID))
	checkNewVM(g, created0, p, vApp)

	if p.vdc.FastProvisioning {
		g.Expect(s.MayHave(ctx, vcd.RightConsolidate)).To(BeTrue(), "linked clones grow only when consolidated")
		task, err = s.VMs.Consolidate(ctx, id)
		await(t, s, task, err)
	}
	task, err = s.VMs.ReconfigureVM(ctx, id, vcd.VMChange{
		ExtraConfig: map[string]string{"guestinfo.metadata": "bWV0YQ==", "guestinfo.x": `<&"> ä`},
		DiskMiB:     p.spec.Template.DiskMiB + 1024,
	})
	await(t, s, task, err)
	task, err = s.VMs.ReconfigureVM(ctx, id,
		vcd.VMChange{ExtraConfig: map[string]string{"disk.enableUUID": "1", "guestinfo.x": ""}})
	await(t, s, task, err)
	changed, err := s.VMs.VM(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed.ExtraConfig).To(HaveKeyWithValue("guestinfo.metadata", "bWV0YQ=="))
	g.Expect(changed.ExtraConfig).To(HaveKeyWithValue("disk.enableUUID", "1"))
	g.Expect(changed.ExtraConfig).NotTo(HaveKey("guestinfo.x"))
	g.Expect(changed.Disks).To(HaveLen(1))
	g.Expect(changed.Disks[0].SizeMiB).To(Equal(p.spec.Template.DiskMiB + 1024))
	g.Expect(changed.Description).To(Equal(p.spec.Description))
	g.Expect(changed.NICs).To(HaveLen(1))

	task, err = s.VMs.PowerOn(ctx, id)
	await(t, s, task, err)
	on, err := s.VMs.VM(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(on.Status).To(Equal(vcd.StatusPoweredOn))
	g.Expect(on.Deployed).To(BeTrue())
	address, err := netip.ParseAddr(on.NICs[0].Address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.network.Subnets[0].StaticPool[0].Contains(address)).To(BeTrue())
	g.Expect(s.Inventory.QueryVM(ctx, id)).To(HaveField("PrimaryAddress", on.NICs[0].Address))

	_, err = s.VMs.DeleteVM(ctx, id)
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "a running VM is not deleted")
	task, err = s.VMs.PowerOff(ctx, id)
	await(t, s, task, err)
	task, err = s.VMs.DeleteVM(ctx, id)
	await(t, s, task, err)
	_, err = s.VMs.VM(ctx, id)
	g.Expect(err).To(Or(MatchError(vcd.ErrForbidden), MatchError(vcd.ErrNotFound)))
	_, err = s.Inventory.QueryVM(ctx, id)
	g.Expect(err).To(MatchError(vcd.ErrNotFound))

	removeVApp(t, s, vApp.ID)
	_, err = s.VApps.FindVApp(ctx, p.vdc, "contract")
	g.Expect(err).To(MatchError(vcd.ErrNotFound))
}

func checkNewVM(g Gomega, vm vcd.VM, p plan, vApp vcd.VApp) {
	g.Expect(vm.Name).To(Equal(p.spec.Name))
	marker, ok := vcd.ParseMarker(vm.Description)
	g.Expect(ok).To(BeTrue())
	g.Expect(marker.Machine).To(Equal("uid-" + p.spec.Name))
	g.Expect(vm.VApp.ID).To(Equal(vApp.ID))
	g.Expect(vm.Status).To(Equal(vcd.StatusPoweredOff))
	g.Expect(vm.Tasks).To(BeEmpty())
	g.Expect(vm.SizingPolicyID).To(Equal(p.spec.SizingPolicy.ID))
	g.Expect(vm.PlacementPolicyID).To(Equal(p.spec.PlacementPolicy.ID))
	g.Expect(vm.StorageProfile.ID).To(Equal(p.spec.StorageProfile.ID))
	g.Expect(vm.CPUs).To(Equal(p.spec.SizingPolicy.CPUs))
	g.Expect(vm.MemoryMiB).To(Equal(p.spec.SizingPolicy.MemoryMiB))
	g.Expect(vm.Disks).To(HaveLen(1))
	g.Expect(vm.Disks[0].SizeMiB).To(Equal(p.spec.Template.DiskMiB))
	g.Expect(vm.NICs).To(HaveLen(1))
	g.Expect(vm.NICs[0].MAC).To(MatchRegexp(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`))
	g.Expect(vm.NICs[0].Mode).To(Equal(vcd.ModePool))
	g.Expect(vm.NICs[0].Adapter).To(Equal("VMXNET3"))
	g.Expect(vm.NICs[0].Primary).To(BeTrue())
}

func TestOneTaskCreatesSeveralVMs(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newTarget(t)
	s := to.session(t)
	p := to.plan(t, s, "pair-0")
	vApp, task, err := s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{Name: "pair", Networks: []vcd.Ref{p.network.Ref}})
	await(t, s, task, err)
	second := p.spec
	second.Name = "pair-1"

	task, err = s.VApps.AddVMs(ctx, vApp.ID, []vcd.VMSpec{p.spec, second})
	await(t, s, task, err)

	rows, err := s.Inventory.VMs(ctx, p.vdc, "pair", 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rows).To(HaveLen(2))
	g.Expect(rows[0].Name).To(Equal("pair-0"))
	g.Expect(rows[1].Name).To(Equal("pair-1"))
	_, err = s.VApps.AddVMs(ctx, vApp.ID, []vcd.VMSpec{p.spec})
	g.Expect(err).To(MatchError(vcd.ErrConflict))
	_, _, err = s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{Name: "pair"})
	g.Expect(err).To(MatchError(vcd.ErrConflict))
	removeVApp(t, s, vApp.ID)
}

func TestNetworksAndLeaseOfAVApp(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newTarget(t)
	s := to.session(t)
	p := to.plan(t, s, "net-0")
	vApp, task, err := s.VApps.ComposeVApp(ctx, p.vdc, vcd.VAppSpec{Name: "net"})
	await(t, s, task, err)

	task, err = s.VApps.ConnectNetworks(ctx, vApp.ID, []vcd.Ref{p.network.Ref})
	await(t, s, task, err)
	got, err := s.VApps.VApp(ctx, vApp.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Networks).To(ConsistOf(to.network))

	task, err = s.VApps.ConnectNetworks(ctx, vApp.ID, []vcd.Ref{p.network.Ref})
	await(t, s, task, err)
	g.Expect(s.VApps.VApp(ctx, vApp.ID)).To(HaveField("Networks", ConsistOf(to.network)), "once is sufficient")

	task, err = s.VApps.SetLease(ctx, vApp.ID, 2*time.Hour, 0)
	await(t, s, task, err)
	g.Expect(s.VApps.VApp(ctx, vApp.ID)).To(HaveField("RuntimeLease", 2*time.Hour))
	removeVApp(t, s, vApp.ID)
}

func TestNetworkProperties(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	s := to.session(t)
	p := to.plan(t, s, "x")

	g.Expect(p.network.Subnets).To(Equal([]vcd.Subnet{{
		Prefix:    netip.MustParsePrefix("192.168.100.0/24"),
		Gateway:   netip.MustParseAddr("192.168.100.1"),
		DNS:       []netip.Addr{netip.MustParseAddr("192.168.100.1")},
		DNSSuffix: "acme.example",
		StaticPool: []vcd.AddressRange{{
			From: netip.MustParseAddr("192.168.100.10"),
			To:   netip.MustParseAddr("192.168.100.99"),
		}},
		DHCPPool: []vcd.AddressRange{{
			From: netip.MustParseAddr("192.168.100.150"),
			To:   netip.MustParseAddr("192.168.100.199"),
		}},
	}}))
	byURN, err := s.Networks.FindNetwork(t.Context(), p.vdc, p.network.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byURN).To(Equal(p.network))
}

func TestTemplateProperties(t *testing.T) {
	to := newTarget(t)
	g := NewWithT(t)
	s := to.session(t)
	p := to.plan(t, s, "x")

	template := p.spec.Template
	g.Expect(template.VM.ID).To(HavePrefix("urn:vcloud:vm:"))
	g.Expect(template.DiskMiB).To(BeNumerically(">", 0))
	g.Expect(template.CPUs).To(BeNumerically(">", 0))
	g.Expect(template.MemoryMiB).To(BeNumerically(">", 0))
	g.Expect(template.NICs).To(Equal(1))
	g.Expect(template.OS).NotTo(BeEmpty())
	g.Expect(template.CatalogRef.Name).To(Equal(to.catalog))
	byURN, err := s.Templates.FindTemplate(t.Context(), "", template.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byURN.VM).To(Equal(template.VM))
	byCatalogURN, err := s.Templates.FindTemplate(t.Context(), template.CatalogRef.ID, to.template)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byCatalogURN.ID).To(Equal(template.ID))
}

func TestLookupsByURN(t *testing.T) {
	to := newTarget(t)
	g := NewWithT(t)
	ctx := t.Context()
	s := to.session(t)
	p := to.plan(t, s, "x")

	g.Expect(s.VDCs.FindVDC(ctx, p.vdc.ID)).To(Equal(p.vdc))
	g.Expect(s.VDCs.FindSizingPolicy(ctx, p.vdc, p.spec.SizingPolicy.ID)).To(Equal(*p.spec.SizingPolicy))
	g.Expect(s.VDCs.FindPlacementPolicy(ctx, p.vdc, p.spec.PlacementPolicy.ID)).To(Equal(*p.spec.PlacementPolicy))
	g.Expect(s.VDCs.FindStorageProfile(ctx, p.vdc, p.spec.StorageProfile.ID)).To(Equal(*p.spec.StorageProfile))
}

func TestMissingObjectsAreNamed(t *testing.T) {
	to := newTarget(t)
	s := to.session(t)
	p := to.plan(t, s, "x")
	vdc := p.vdc
	in := " in VDC " + vdc.Name
	const absent = " does not exist or is not visible to this user"
	tests := []struct {
		name string
		find func() error
		kind error
		text string
	}{
		{
			name: "VDC",
			find: func() error { _, err := s.VDCs.FindVDC(t.Context(), "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `VDC "nope" in organization ` + s.Org() + absent,
		},
		{
			name: "network",
			find: func() error { _, err := s.Networks.FindNetwork(t.Context(), vdc, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `network "nope"` + in + absent,
		},
		{
			name: "catalog",
			find: func() error { _, err := s.Templates.FindTemplate(t.Context(), "nope", to.template); return err },
			kind: vcd.ErrNotFound,
			text: `catalog "nope" in organization ` + s.Org() + absent,
		},
		{
			name: "template",
			find: func() error { _, err := s.Templates.FindTemplate(t.Context(), to.catalog, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `template "nope" in catalog ` + to.catalog + absent,
		},
		{
			name: "sizing policy",
			find: func() error { _, err := s.VDCs.FindSizingPolicy(t.Context(), vdc, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `sizing policy "nope"` + in + absent,
		},
		{
			name: "policy of the other kind",
			find: func() error { _, err := s.VDCs.FindSizingPolicy(t.Context(), vdc, to.placement); return err },
			kind: vcd.ErrInvalid,
			text: `sizing policy "` + to.placement + `"` + in + " is a placement policy",
		},
		{
			name: "placement policy",
			find: func() error { _, err := s.VDCs.FindPlacementPolicy(t.Context(), vdc, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `placement policy "nope"` + in + absent,
		},
		{
			name: "storage profile",
			find: func() error { _, err := s.VDCs.FindStorageProfile(t.Context(), vdc, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `storage profile "nope"` + in + absent,
		},
		{
			name: "vApp",
			find: func() error { _, err := s.VApps.FindVApp(t.Context(), vdc, "nope"); return err },
			kind: vcd.ErrNotFound,
			text: `vApp "nope"` + in + absent,
		},
		{
			name: "names are case-sensitive",
			find: func() error { _, err := s.VDCs.FindVDC(t.Context(), "ACME-vdc"); return err },
			kind: vcd.ErrNotFound,
			text: `VDC "ACME-vdc" in organization ` + s.Org() + absent,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			err := tt.find()

			g.Expect(err).To(MatchError(tt.kind))
			g.Expect(err.Error()).To(Equal(tt.text))
		})
	}
}
