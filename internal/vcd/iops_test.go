// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/xml"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
	"k8s.io/utils/ptr"
)

func TestIOPSOfTheFirstDiskAreReplaced(t *testing.T) {
	shown := "<IopsAllocation><Reservation>500</Reservation><Limit>500</Limit></IopsAllocation><VirtualQuantityUnit>"
	for name, document := range map[string]string{
		"if VCD shows them":         strings.Replace(vmDocument, "<VirtualQuantityUnit>", shown, 1),
		"if VCD does not show them": vmDocument,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			body, err := reconfigured([]byte(document), VMChange{DiskIOPS: 1200})

			g.Expect(err).NotTo(HaveOccurred())
			var vm types.Vm
			g.Expect(xml.Unmarshal(body, &vm)).To(Succeed())
			g.Expect(vm.VmSpecSection.Modified).To(HaveValue(BeTrue()))
			disks := vmFrom(&vm).Disks
			g.Expect(disks).To(HaveLen(2))
			g.Expect(disks[0].IOPS).To(BeNil(), "an independent disk is unchanged")
			g.Expect(disks[1]).To(Equal(Disk{ID: "2000", SizeMiB: 20480, IOPS: ptr.To[int64](1200)}))
			g.Expect(string(body)).To(ContainSubstring("</IopsAllocation><VirtualQuantityUnit>"), "the order of the schema")
		})
	}
}
