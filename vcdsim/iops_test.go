// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// limited sets the IOPS limits of the default storage profile.
func limited(limits vcdsim.IOPS) func(*vcdsim.Config) {
	return func(cfg *vcdsim.Config) {
		cfg.Model = vcdsim.K8sTenant()
		cfg.Model.Orgs[1].VDCs[0].StorageProfiles[0].IOPS = limits
	}
}

// withDisk returns the body that keeps the first disk of a VM and adds a disk of 10 GB, with additional elements.
func withDisk(more string) string {
	return `<Vm ` + xmlns + `><VmSpecSection Modified="true"><ovf:Info/><DiskSection><DiskSettings>` +
		`<DiskId>2000</DiskId><SizeMb>20480</SizeMb></DiskSettings><DiskSettings><SizeMb>10240</SizeMb>` +
		`<UnitNumber>1</UnitNumber><BusNumber>0</BusNumber><AdapterType>5</AdapterType>` + more +
		`</DiskSettings></DiskSection></VmSpecSection></Vm>`
}

// reserved returns the element with the IOPS.
func reserved(iops int) string {
	return fmt.Sprintf("<IopsAllocation><Reservation>%d</Reservation></IopsAllocation>", iops)
}

func TestDisksHaveTheIOPSOfTheirStorageProfile(t *testing.T) {
	tests := []struct {
		name   string
		limits vcdsim.IOPS
		more   string
		first  int64 // of the disk of the template
		second int64
	}{
		{"its default", vcdsim.IOPS{Enabled: true, DiskMax: 3000, DiskDefault: 500}, "", 500, 500},
		{"their own number", vcdsim.IOPS{Enabled: true, DiskMax: 3000, DiskDefault: 500}, reserved(3000), 500, 3000},
		{"their own number, as older clients request", vcdsim.IOPS{Enabled: true, DiskMax: 3000}, "<iops>200</iops>", 0, 200},
		{"a default by size", vcdsim.IOPS{Enabled: true, DiskDefault: 150, PerGB: 10}, "", 150, 100},
		{"any number without a maximum", vcdsim.IOPS{Enabled: true}, reserved(90000), 0, 90000},
		{"none without limits", vcdsim.IOPS{DiskMax: 3000, DiskDefault: 500}, reserved(200), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, limited(tt.limits))
			vm := c.vm(c.vapp("fast"), "node")

			c.ok(http.MethodPost, vm+"/action/reconfigureVm", withDisk(tt.more))

			disks := c.state("node").Disks
			c.Expect(disks).To(HaveLen(2))
			c.Expect(disks[0].IOPS.Reservation).To(Equal(tt.first))
			c.Expect(disks[1].IOPS.Reservation).To(Equal(tt.second))
			profile := c.get("/api/vdcStorageProfile/" + disks[1].StorageProfileID).xml
			c.Expect(profile.Str("IopsAllocated")).To(Equal(fmt.Sprint(tt.first + tt.second)))
		})
	}
}

func TestIOPSBeyondTheLimitsAreRejected(t *testing.T) {
	refusing := vcdsim.DefaultAssumptions()
	refusing.IOPSIgnoredWithoutLimits = false
	tests := []struct {
		name   string
		limits vcdsim.IOPS
		assume *vcdsim.Assumptions
		more   string
		code   string
		says   string
	}{
		{
			name:   "more than a disk may have",
			limits: vcdsim.IOPS{Enabled: true, DiskMax: 3000},
			more:   reserved(3001),
			code:   "VM_LIMITS_SOFT_VIOLATION",
			says:   `Requested disk iops 3001 for virtual machine "node" exceeds maximum allowed iops 3000`,
		},
		{
			name:   "an unlimited disk",
			limits: vcdsim.IOPS{Enabled: true, DiskMax: 3000, DiskDefault: 500},
			more:   reserved(0),
			code:   "VM_LIMITS_SOFT_VIOLATION",
			says:   "Requested disk iops 0",
		},
		{
			name:   "more than a disk of this size may have",
			limits: vcdsim.IOPS{Enabled: true, DiskMax: 3000, PerGB: 10},
			more:   reserved(101),
			code:   "VM_LIMITS_SOFT_VIOLATION",
			says:   "exceeds maximum allowed iops 100",
		},
		{
			name:   "more than all disks may have",
			limits: vcdsim.IOPS{Enabled: true, DiskDefault: 500, Limit: 1000},
			more:   reserved(501),
			code:   "VM_LIMITS_SOFT_VIOLATION",
			says:   "exceeds the limit 1000",
		},
		{
			name:   "any number without limits, if VCD does not ignore it",
			assume: &refusing,
			more:   reserved(200),
			code:   "BAD_REQUEST",
			says:   "does not support IOPS",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, limited(tt.limits), func(cfg *vcdsim.Config) { cfg.Assumptions = tt.assume })
			vm := c.vm(c.vapp("fast"), "node")

			c.Expect(c.refused(http.MethodPost, vm+"/action/reconfigureVm", withDisk(tt.more), 400, tt.code)).To(
				ContainSubstring(tt.says))

			c.Expect(c.state("node").Disks).To(HaveLen(1))
		})
	}
}
