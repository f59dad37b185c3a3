// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

var marker = vcd.Marker{Cluster: "infra", Machine: "uid"}

func aVM() vcd.VM {
	return vcd.VM{
		Ref:               vcd.Ref{ID: "urn:vm", Name: "cp-0"},
		Description:       "of the machine: " + marker.String(),
		VApp:              vcd.Ref{ID: "urn:vapp", Name: "c1"},
		CPUs:              2,
		MemoryMiB:         4096,
		SizingPolicyID:    "urn:small",
		PlacementPolicyID: "urn:rack-a",
		StorageProfile:    vcd.Ref{ID: "urn:standard", Name: "standard"},
		Disks: []vcd.Disk{
			{ID: "1", SizeMiB: 100, Independent: &vcd.Ref{ID: "urn:disk"}},
			{ID: "2000", SizeMiB: 20480},
		},
		NICs: []vcd.NIC{
			{
				Index:   0,
				MAC:     "00:50:56:00:00:01",
				Network: "nodes",
				Mode:    vcd.ModePool,
				Address: "192.168.100.10",
				Primary: true,
			},
			{Index: 1, MAC: "00:50:56:00:00:02", Network: "storage", Mode: vcd.ModeDHCP, Address: "10.20.0.150"},
		},
	}
}

func aRow() vcd.VMRecord {
	return vcd.VMRecord{
		Ref:            vcd.Ref{ID: "urn:vm", Name: "cp-0"},
		VApp:           vcd.Ref{ID: "urn:vapp", Name: "c1"},
		VDC:            vcd.Ref{ID: "urn:vdc", Name: "acme-vdc"},
		CPUs:           2,
		MemoryMiB:      4096,
		SizingPolicyID: "urn:small",
	}
}

func reasonsOf(found []Difference) []string {
	var reasons []string
	for _, d := range found {
		reasons = append(reasons, d.reason)
	}
	return reasons
}

func TestDifferencesWithAWorkingNode(t *testing.T) {
	tests := []struct {
		name      string
		change    func(*vcd.VM, *vcd.VMRecord)
		requested int64
		reasons   []string
		words     string
	}{
		{"an untouched VM has no differences", func(*vcd.VM, *vcd.VMRecord) {}, 0, nil, ""},
		{
			"a lost marker is the worst difference",
			func(v *vcd.VM, _ *vcd.VMRecord) {
				v.Description = "mine"
				v.CPUs = 8
			},
			0,
			[]string{infrav1.MarkerNotFoundReason, infrav1.ComputeChangedReason},
			"add \"" + marker.String() + "\" to it",
		},
		{
			"a renamed VM",
			func(_ *vcd.VM, r *vcd.VMRecord) { r.Name = "mine" },
			0,
			[]string{infrav1.VMRenamedReason},
			"named mine, but was created as cp-0",
		},
		{
			"a VM moved to another vApp",
			func(_ *vcd.VM, r *vcd.VMRecord) { r.VApp = vcd.Ref{ID: "urn:other", Name: "attic"} },
			0,
			[]string{infrav1.VMMovedReason},
			"vApp attic",
		},
		{
			"a VM moved to another VDC",
			func(_ *vcd.VM, r *vcd.VMRecord) { r.VDC = vcd.Ref{ID: "urn:other", Name: "attic"} },
			0,
			[]string{infrav1.VMMovedReason},
			"VDC attic",
		},
		{
			"changed CPUs",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.CPUs = 8 },
			0,
			[]string{infrav1.ComputeChangedReason},
			"has 8 CPUs, but had 2 at creation",
		},
		{
			"changed memory",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.MemoryMiB = 8192 },
			0,
			[]string{infrav1.ComputeChangedReason},
			"has 8192 MiB of memory, but had 4096 at creation",
		},
		{
			"a changed sizing policy",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.SizingPolicyID = "urn:large" },
			0,
			[]string{infrav1.PolicyChangedReason},
			"sizing policy is urn:large, but was urn:small at creation",
		},
		{
			"a removed placement policy",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.PlacementPolicyID = "" },
			0,
			[]string{infrav1.PolicyChangedReason},
			"placement policy is none, but was urn:rack-a at creation",
		},
		{
			"a changed storage profile",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.StorageProfile.ID = "urn:fast" },
			0,
			[]string{infrav1.PolicyChangedReason},
			"storage profile",
		},
		{
			"a renamed storage profile is no difference",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.StorageProfile.Name = "renamed" },
			0,
			nil,
			"",
		},
		{
			"an added NIC",
			func(v *vcd.VM, _ *vcd.VMRecord) {
				v.NICs = append(v.NICs, vcd.NIC{MAC: "00:50:56:00:00:03", Network: "dmz"})
			},
			0,
			[]string{infrav1.NICsChangedReason},
			"network dmz was added",
		},
		{
			"an expanded disk",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks[1].SizeMiB = 30720 },
			0,
			[]string{infrav1.DiskChangedReason},
			"has 30720Mi instead of 20480Mi",
		},
		{
			"a disk can be expanded in VCD beyond the requested size",
			func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks[1].SizeMiB = 40960 },
			30720,
			[]string{infrav1.DiskChangedReason},
			"instead of 30720Mi",
		},
		{
			"a requested disk must not be smaller than it is",
			func(*vcd.VM, *vcd.VMRecord) {},
			10240,
			[]string{infrav1.DiskTooSmallReason},
			"cannot shrink",
		},
		{"independent disks may be attached and detached", func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks = v.Disks[1:] }, 0, nil, ""},
		{
			"all differences are reported, with the worst as the reason",
			func(v *vcd.VM, r *vcd.VMRecord) {
				r.Name = "mine"
				r.VApp.ID = "urn:other"
				v.CPUs = 8
			},
			0,
			[]string{infrav1.VMMovedReason, infrav1.VMRenamedReason, infrav1.ComputeChangedReason},
			"; ",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			made := From(aVM(), "urn:vdc")
			vm := aVM()
			row := aRow()
			tt.change(&vm, &row)

			found := made.Differences(Observed{
				Name:         "cp-0",
				Row:          row,
				VM:           &vm,
				Marker:       marker,
				RequestedMiB: tt.requested,
			})

			g.Expect(reasonsOf(found)).To(Equal(tt.reasons))
			if tt.reasons != nil {
				reason, message := Summary(found)
				g.Expect(reason).To(Equal(tt.reasons[0]))
				g.Expect(message).To(ContainSubstring(tt.words))
			}
		})
	}
}

func TestDifferencesWithoutTheVMComeFromTheInventory(t *testing.T) {
	g := NewWithT(t)
	row := aRow()
	row.Name = "mine"
	row.CPUs = 8
	made := From(aVM(), "urn:vdc")

	g.Expect(reasonsOf(made.Differences(Observed{Name: "cp-0", Row: row}))).To(Equal([]string{infrav1.VMRenamedReason}))
	g.Expect(made.Suspicious(row)).To(BeTrue(), "the VM is read for that reason")
	g.Expect(made.Suspicious(aRow())).To(BeFalse(), "missing values of a row are no differences")
}

func TestDifferencesThatBreakTheGuest(t *testing.T) {
	tests := []struct {
		name    string
		change  func([]infrav1.NICStatus) []infrav1.NICStatus
		reasons []string
		words   string
	}{
		{
			"untouched NICs have no differences",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { return n },
			nil,
			"",
		},
		{
			"the order does not matter",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { return []infrav1.NICStatus{n[1], n[0]} },
			nil,
			"",
		},
		{
			"a changed address of a pool",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Address = "192.168.100.66"; return n },
			[]string{infrav1.AddressChangedReason},
			"has address 192.168.100.66 in VCD, but its guest is configured with 192.168.100.10",
		},
		{
			"an address by DHCP may change",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { n[1].Address = "10.20.0.151"; return n },
			nil,
			"",
		},
		{
			"an invisible address is unknown",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Address = ""; return n },
			nil,
			"",
		},
		{
			"a removed NIC",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { return n[:1] },
			[]string{infrav1.NICsChangedReason},
			"NIC 1 (00:50:56:00:00:02) on network storage was removed",
		},
		{
			"a NIC on another network",
			func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Network = "dmz"; return n },
			[]string{infrav1.NICsChangedReason},
			"connected to network dmz, but was created on nodes",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var nics []infrav1.NICStatus
			for _, nic := range aVM().NICs {
				nics = append(nics, infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
			}

			found := From(aVM(), "urn:vdc").Unreachable(tt.change(nics))

			g.Expect(reasonsOf(found)).To(Equal(tt.reasons))
			if tt.reasons != nil {
				_, message := Summary(found)
				g.Expect(message).To(ContainSubstring(tt.words))
			}
		})
	}
}
