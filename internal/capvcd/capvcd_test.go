// SPDX-License-Identifier: Apache-2.0

package capvcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
)

func TestIsClusterID(t *testing.T) {
	const uuid = "11111111-2222-3333-4444-555555555555"
	tests := []struct {
		name string
		id   string
		want bool
	}{
		{"the URN of an entity", capvcd.EntityPrefix + uuid, true},
		{"the ID of a cluster without an entity", capvcd.NoEntityPrefix + uuid, true},
		{"the ID of a cluster of this provider", uuid, false},
		{"an entity of another type", "urn:vcloud:entity:vmware:tkgcluster:" + uuid, false},
		{"an ID with a suffix", capvcd.NoEntityPrefix + uuid + "-tcp", false},
		{"a prefix only", capvcd.NoEntityPrefix, false},
		{"no ID", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(capvcd.IsClusterID(tt.id)).To(Equal(tt.want))
		})
	}
}
