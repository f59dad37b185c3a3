// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestDiskOwner(t *testing.T) {
	const infraUUID = "11111111-2222-3333-4444-555555555555"
	tests := []struct {
		name, infraID, description string
		want                       bool
	}{
		{"our marker", "prod", vcd.Marker{Cluster: "prod"}.String(), true},
		{"another's marker", infraUUID, vcd.Marker{Cluster: "prod"}.String(), false},
		{"the ID, as written by a CSI driver", infraUUID, infraUUID, true},
		{
			"the ID of an RDE",
			"urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID,
			"urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID,
			true,
		},
		{"a name that a user chose for both", "prod", "prod", false},
		{"the ID among others", infraUUID, "copy of " + infraUUID, false},
		{"no ID", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(ownsDisk(tt.infraID, vcd.NamedDisk{Description: tt.description})).To(Equal(tt.want))
		})
	}
}
