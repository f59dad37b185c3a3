// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

func TestNewDisksFollowExistingDisks(t *testing.T) {
	disk := func(bus, unit int) string {
		return fmt.Sprintf("<DiskSettings><DiskId>x</DiskId><SizeMb>1024</SizeMb><UnitNumber>%d</UnitNumber><BusNumber>%d</BusNumber><AdapterType>4</AdapterType></DiskSettings>", unit, bus)
	}
	tests := []struct {
		name  string
		has   []string
		added int
		units []int
		fails string
	}{
		{"after the disk of the template", []string{disk(1, 0)}, 2, []int{1, 2}, ""},
		{"after an independent disk on the same bus", []string{disk(1, 0), disk(1, 3)}, 1, []int{4}, ""},
		{"not after disks on other buses", []string{disk(1, 0), disk(0, 9)}, 1, []int{1}, ""},
		{"skipping the controller's unit", []string{disk(1, 0), disk(1, 5)}, 3, []int{6, 8, 9}, ""},
		{"up to the limit of a bus", []string{disk(1, 14)}, 2, nil, "no free slot on its controller"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			document := "<Vm><VmSpecSection><DiskSection>" + strings.Join(tt.has, "") +
				"</DiskSection></VmSpecSection></Vm>"

			body, err := reconfigured([]byte(document), VMChange{}, make([]wire.DiskSettings, tt.added)...)

			if tt.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var vm types.Vm
			g.Expect(xml.Unmarshal(body, &vm)).To(Succeed())
			g.Expect(vm.VmSpecSection.Modified).To(HaveValue(BeTrue()))
			disks := vm.VmSpecSection.DiskSection.DiskSettings
			g.Expect(disks).To(HaveLen(len(tt.has) + tt.added))
			for i, unit := range tt.units {
				added := disks[len(tt.has)+i]
				g.Expect(added.UnitNumber).To(Equal(unit))
				g.Expect(added.BusNumber).To(Equal(1))
				g.Expect(added.AdapterType).To(Equal("4"))
			}
		})
	}
}
