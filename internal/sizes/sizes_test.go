// SPDX-License-Identifier: Apache-2.0

package sizes_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestMachineSizes(t *testing.T) {
	t.Parallel()
	template := vcd.Template{CPUs: 2, MemoryMiB: 2048, DiskMiB: 20480}
	asked := infrav1.VCDMachineSpec{
		CPUs:     6,
		Memory:   ptr.To(resource.MustParse("12Gi")),
		DiskSize: ptr.To(resource.MustParse("40Gi")),
	}
	tests := []struct {
		name     string
		spec     infrav1.VCDMachineSpec
		template vcd.Template
		policy   vcd.Policy
		want     sizes.Size
	}{
		{name: "their template", spec: infrav1.VCDMachineSpec{}, template: template, policy: vcd.Policy{}, want: sizes.Size{CPUs: 2, MemoryMiB: 2048, DiskMiB: 20480}},
		{
			name:     "their policy, if it sets a value",
			spec:     infrav1.VCDMachineSpec{},
			template: template,
			policy:   vcd.Policy{CPUs: 8},
			want:     sizes.Size{CPUs: 8, MemoryMiB: 2048, DiskMiB: 20480},
		},
		{name: "their spec", spec: asked, template: template, policy: vcd.Policy{CPUs: 8}, want: sizes.Size{CPUs: 6, MemoryMiB: 12288, DiskMiB: 40960}},
		{name: "unknown sizes", spec: infrav1.VCDMachineSpec{}, template: vcd.Template{}, policy: vcd.Policy{}, want: sizes.Size{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(sizes.Of(&tt.spec, tt.template, tt.policy)).To(Equal(tt.want))
		})
	}
}

func TestChangesOfSizes(t *testing.T) {
	t.Parallel()
	vm := sizes.Size{CPUs: 2, MemoryMiB: 2048, DiskMiB: 20480}
	larger := infrav1.VCDMachineSpec{
		CPUs:     4,
		Memory:   ptr.To(resource.MustParse("4Gi")),
		DiskSize: ptr.To(resource.MustParse("40Gi")),
	}
	smaller := infrav1.VCDMachineSpec{
		CPUs:     1,
		Memory:   ptr.To(resource.MustParse("1Gi")),
		DiskSize: ptr.To(resource.MustParse("10Gi")),
	}
	tests := []struct {
		name string
		spec infrav1.VCDMachineSpec
		want sizes.Size
	}{
		{"a spec without sizes changes nothing", infrav1.VCDMachineSpec{}, sizes.Size{}},
		{"larger sizes", larger, sizes.Size{CPUs: 4, MemoryMiB: 4096, DiskMiB: 40960}},
		{"disks do not shrink", smaller, sizes.Size{CPUs: 1, MemoryMiB: 1024}},
		{"equal values", infrav1.VCDMachineSpec{CPUs: 2, Memory: ptr.To(resource.MustParse("2Gi"))}, sizes.Size{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(sizes.Change(&tt.spec, vm)).To(Equal(tt.want))
		})
	}
}

func TestSizesAreRoundedUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	g.Expect(sizes.InMiB(resource.MustParse("1Gi"))).To(Equal(int64(1024)))
	g.Expect(sizes.InMiB(resource.MustParse("1G"))).To(Equal(int64(954)))
}
