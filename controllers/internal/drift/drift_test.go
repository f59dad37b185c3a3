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
		{name: "an untouched VM has no differences", change: func(*vcd.VM, *vcd.VMRecord) {}},
		{
			name: "a lost marker is the worst difference",
			change: func(v *vcd.VM, _ *vcd.VMRecord) {
				v.Description = "mine"
				v.CPUs = 8
			},
			reasons: []string{infrav1.MarkerNotFoundReason, infrav1.ComputeChangedReason},
			words:   "add \"" + marker.String() + "\" to it",
		},
		{
			name:    "a renamed VM",
			change:  func(_ *vcd.VM, r *vcd.VMRecord) { r.Name = "mine" },
			reasons: []string{infrav1.VMRenamedReason},
			words:   "named mine, but was created as cp-0",
		},
		{
			name:    "a VM moved to another vApp",
			change:  func(_ *vcd.VM, r *vcd.VMRecord) { r.VApp = vcd.Ref{ID: "urn:other", Name: "attic"} },
			reasons: []string{infrav1.VMMovedReason},
			words:   "vApp attic",
		},
		{
			name:    "a VM moved to another VDC",
			change:  func(_ *vcd.VM, r *vcd.VMRecord) { r.VDC = vcd.Ref{ID: "urn:other", Name: "attic"} },
			reasons: []string{infrav1.VMMovedReason},
			words:   "VDC attic",
		},
		{
			name:    "changed CPUs",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.CPUs = 8 },
			reasons: []string{infrav1.ComputeChangedReason},
			words:   "has 8 CPUs, but had 2 at creation",
		},
		{
			name:    "changed memory",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.MemoryMiB = 8192 },
			reasons: []string{infrav1.ComputeChangedReason},
			words:   "has 8192 MiB of memory, but had 4096 at creation",
		},
		{
			name:    "a changed sizing policy",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.SizingPolicyID = "urn:large" },
			reasons: []string{infrav1.PolicyChangedReason},
			words:   "sizing policy is urn:large, but was urn:small at creation",
		},
		{
			name:    "a removed placement policy",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.PlacementPolicyID = "" },
			reasons: []string{infrav1.PolicyChangedReason},
			words:   "placement policy is none, but was urn:rack-a at creation",
		},
		{
			name:    "a changed storage profile",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.StorageProfile.ID = "urn:fast" },
			reasons: []string{infrav1.PolicyChangedReason},
			words:   "storage profile",
		},
		{
			name:   "a renamed storage profile is no difference",
			change: func(v *vcd.VM, _ *vcd.VMRecord) { v.StorageProfile.Name = "renamed" },
		},
		{
			name: "an added NIC",
			change: func(v *vcd.VM, _ *vcd.VMRecord) {
				v.NICs = append(v.NICs, vcd.NIC{MAC: "00:50:56:00:00:03", Network: "dmz"})
			},
			reasons: []string{infrav1.NICsChangedReason},
			words:   "network dmz was added",
		},
		{
			name:    "an expanded disk",
			change:  func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks[1].SizeMiB = 30720 },
			reasons: []string{infrav1.DiskChangedReason},
			words:   "has 30720Mi instead of 20480Mi",
		},
		{
			name:      "a disk can be expanded in VCD beyond the requested size",
			change:    func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks[1].SizeMiB = 40960 },
			requested: 30720,
			reasons:   []string{infrav1.DiskChangedReason},
			words:     "instead of 30720Mi",
		},
		{
			name:      "a requested disk must not be smaller than it is",
			change:    func(*vcd.VM, *vcd.VMRecord) {},
			requested: 10240,
			reasons:   []string{infrav1.DiskTooSmallReason},
			words:     "cannot shrink",
		},
		{name: "independent disks may be attached and detached", change: func(v *vcd.VM, _ *vcd.VMRecord) { v.Disks = v.Disks[1:] }},
		{
			name: "all differences are reported, with the worst as the reason",
			change: func(v *vcd.VM, r *vcd.VMRecord) {
				r.Name = "mine"
				r.VApp.ID = "urn:other"
				v.CPUs = 8
			},
			reasons: []string{infrav1.VMMovedReason, infrav1.VMRenamedReason, infrav1.ComputeChangedReason},
			words:   "; ",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			baseline := BaselineOf(aVM(), "urn:vdc")
			vm := aVM()
			row := aRow()
			tt.change(&vm, &row)

			found := baseline.Differences(Observed{
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
	baseline := BaselineOf(aVM(), "urn:vdc")

	g.Expect(reasonsOf(baseline.Differences(Observed{Name: "cp-0", Row: row}))).To(Equal([]string{infrav1.VMRenamedReason}))
	g.Expect(baseline.MayDiffer(row)).To(BeTrue(), "the VM is read for that reason")
	g.Expect(baseline.MayDiffer(aRow())).To(BeFalse(), "missing values of a row are no differences")
}

func TestDifferencesThatBreakTheGuest(t *testing.T) {
	tests := []struct {
		name    string
		change  func([]infrav1.NICStatus) []infrav1.NICStatus
		reasons []string
		words   string
	}{
		{
			name:   "untouched NICs have no differences",
			change: func(n []infrav1.NICStatus) []infrav1.NICStatus { return n },
		},
		{
			name:   "the order does not matter",
			change: func(n []infrav1.NICStatus) []infrav1.NICStatus { return []infrav1.NICStatus{n[1], n[0]} },
		},
		{
			name:    "a changed address of a pool",
			change:  func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Address = "192.168.100.66"; return n },
			reasons: []string{infrav1.AddressChangedReason},
			words:   "has address 192.168.100.66 in VCD, but its guest is configured with 192.168.100.10",
		},
		{
			name:   "an address by DHCP may change",
			change: func(n []infrav1.NICStatus) []infrav1.NICStatus { n[1].Address = "10.20.0.151"; return n },
		},
		{
			name:   "an invisible address is unknown",
			change: func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Address = ""; return n },
		},
		{
			name:    "a removed NIC",
			change:  func(n []infrav1.NICStatus) []infrav1.NICStatus { return n[:1] },
			reasons: []string{infrav1.NICsChangedReason},
			words:   "NIC 1 (00:50:56:00:00:02) on network storage was removed",
		},
		{
			name:    "a NIC on another network",
			change:  func(n []infrav1.NICStatus) []infrav1.NICStatus { n[0].Network = "dmz"; return n },
			reasons: []string{infrav1.NICsChangedReason},
			words:   "connected to network dmz, but was created on nodes",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var nics []infrav1.NICStatus
			for _, nic := range aVM().NICs {
				nics = append(nics, infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
			}

			found := BaselineOf(aVM(), "urn:vdc").Unreachable(tt.change(nics))

			g.Expect(reasonsOf(found)).To(Equal(tt.reasons))
			if tt.reasons != nil {
				_, message := Summary(found)
				g.Expect(message).To(ContainSubstring(tt.words))
			}
		})
	}
}
