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
		{name: "our marker", infraID: "prod", description: vcd.Marker{Cluster: "prod"}.String(), want: true},
		{name: "another's marker", infraID: infraUUID, description: vcd.Marker{Cluster: "prod"}.String()},
		{name: "the ID, as written by a CSI driver", infraID: infraUUID, description: infraUUID, want: true},
		{
			name:        "the ID of an RDE",
			infraID:     "urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID,
			description: "urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID,
			want:        true,
		},
		{name: "a name that a user chose for both", infraID: "prod", description: "prod"},
		{name: "the ID among others", infraID: infraUUID, description: "copy of " + infraUUID},
		{name: "no ID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(ownsDisk(tt.infraID, vcd.NamedDisk{Description: tt.description})).To(Equal(tt.want))
		})
	}
}
