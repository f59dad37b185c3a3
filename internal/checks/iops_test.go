// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestIOPSMustBeWithinTheLimitsOfTheStorageProfile(t *testing.T) {
	profile := vcd.StorageProfile{Ref: vcd.Ref{Name: "gold"}}
	for _, tt := range []struct {
		name    string
		limits  vcd.IOPSLimits
		refused string // empty: not
	}{
		{"without a maximum", vcd.IOPSLimits{Enabled: true}, ""},
		{"of any disk", vcd.IOPSLimits{Enabled: true, Max: 1000}, ""},
		{"for the size", vcd.IOPSLimits{Enabled: true, Max: 2000, PerGB: 100}, ""},
		{"not if unlimited", vcd.IOPSLimits{Max: 2000}, "storage profile gold has no IOPS limiting"},
		{"not above the maximum", vcd.IOPSLimits{Enabled: true, Max: 999, PerGB: 100}, "allows 999"},
		{"not above the maximum for the size", vcd.IOPSLimits{Enabled: true, PerGB: 99}, "allows 990 for a disk of 10240Mi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			disk := checks.DiskWithIOPS{Field: "spec.diskIOPS", IOPS: 1000, SizeMiB: 10 << 10}

			found := checks.IOPS(disk, profile, tt.limits)

			if tt.refused == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found.Reason).To(Equal(infrav1.DiskIOPSInvalidReason))
			g.Expect(found.Message).To(And(ContainSubstring("spec.diskIOPS is 1000"), ContainSubstring(tt.refused)))
		})
	}
}

func TestDisksWithIOPS(t *testing.T) {
	g := NewWithT(t)
	spec := &infrav1.VCDMachineSpec{
		DiskIOPS: 500,
		AdditionalDisks: []infrav1.DiskSpec{
			{Name: "logs", Size: resource.MustParse("1Gi")},
			{Name: "data", Size: resource.MustParse("2Gi"), IOPS: 300},
			{Name: "etcd", Size: resource.MustParse("3Gi"), IOPS: 400, StorageProfile: "fast"},
		},
	}

	g.Expect(checks.DisksWithIOPS(spec, "gold", vcd.Template{DiskMiB: 20480})).To(Equal([]checks.DiskWithIOPS{
		{Field: "spec.diskIOPS", IOPS: 500, SizeMiB: 20480, StorageProfile: "gold"},
		{Field: "spec.additionalDisks[1].iops", IOPS: 300, SizeMiB: 2048, StorageProfile: "gold"},
		{Field: "spec.additionalDisks[2].iops", IOPS: 400, SizeMiB: 3072, StorageProfile: "fast"},
	}))
}
