// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestIOPSAreRequestedUntilTheDiskHasThem(t *testing.T) {
	for _, tt := range []struct {
		name      string
		disk      vcd.Disk
		desired   int64
		requested int64
		want      int64
	}{
		{"a disk with another number", vcd.Disk{ID: "2000", IOPS: ptr.To[int64](500)}, 1200, 0, 1200},
		{"not a disk that already has them", vcd.Disk{ID: "2000", IOPS: ptr.To[int64](1200)}, 1200, 0, 0},
		{"a disk that VCD did not change yet", vcd.Disk{ID: "2000", IOPS: ptr.To[int64](500)}, 1200, 1200, 1200},
		{"a disk whose IOPS are hidden from the user", vcd.Disk{ID: "2000"}, 1200, 0, 1200},
		{"a disk with unknown IOPS only once", vcd.Disk{ID: "2000"}, 1200, 1200, 0},
		{"not a disk without requested IOPS", vcd.Disk{ID: "2000", IOPS: ptr.To[int64](500)}, 0, 0, 0},
		{"not a VM without a disk", vcd.Disk{}, 1200, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(iopsChange(tt.desired, tt.disk, tt.requested)).To(Equal(tt.want))
		})
	}
}
