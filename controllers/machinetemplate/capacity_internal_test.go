// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
)

func TestNodesThatImagesBecome(t *testing.T) {
	tests := []struct {
		guestOS string
		want    infrav1.NodeInfo
	}{
		{"ubuntu64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"other5xLinux64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"vmwarePhoton64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}},
		{"arm-ubuntu-64", infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}},
		{"windows2019srvNext_64Guest", infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "windows"}},
		{"darwin19_64Guest", infrav1.NodeInfo{Architecture: "amd64"}},
		{"ubuntuGuest", infrav1.NodeInfo{OperatingSystem: "linux"}},
		{"", infrav1.NodeInfo{}},
	}
	for _, tt := range tests {
		t.Run(tt.guestOS, func(t *testing.T) {
			NewWithT(t).Expect(nodeInfoOf(tt.guestOS)).To(Equal(tt.want))
		})
	}
}

func TestCapacityThatNobodyTellsIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(capacityOf(sizes.Size{})).To(BeEmpty())
	got := capacityOf(sizes.Size{CPUs: 8, MemoryMiB: 2048})
	g.Expect(got).To(HaveLen(2))
	g.Expect(got.Cpu().String()).To(Equal("8"))
	g.Expect(got.Memory().String()).To(Equal("2Gi"))
}
