// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
)

func TestUnknownCapacityIsOmitted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(capacityOf(sizes.Size{})).To(BeEmpty())
	got := capacityOf(sizes.Size{CPUs: 8, MemoryMiB: 2048})
	g.Expect(got).To(HaveLen(2))
	g.Expect(got.Cpu().String()).To(Equal("8"))
	g.Expect(got.Memory().String()).To(Equal("2Gi"))
}
