// SPDX-License-Identifier: Apache-2.0

package marks_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	theirID = "NO_RDE_11111111-2222-3333-4444-555555555555"
	otherID = "NO_RDE_99999999-2222-3333-4444-555555555555"
)

// metadata contains the values of CAPVCD's key, by vApp.
type metadata map[string]string

func (m metadata) MetadataValue(_ context.Context, vAppID, _ string) (string, error) {
	value, ok := m[vAppID]
	if !ok {
		return "", errors.New("not asked for")
	}
	return value, nil
}

func TestOwnsVApp(t *testing.T) {
	marked := func(cluster string) string { return vcd.Marker{Cluster: cluster}.String() }
	tests := []struct {
		name        string
		cluster     string
		description string
		metadata    metadata
		want        bool
	}{
		{"its marker", "id", marked("id"), nil, true},
		{"another cluster's marker", "id", marked("other"), nil, false},
		{"no marker", "id", "", nil, false},
		{"no marker, and CAPVCD's metadata", theirID, "Description for [prod]", metadata{"vapp": theirID}, true},
		{"metadata of another cluster", theirID, "Description for [prod]", metadata{"vapp": otherID}, false},
		{"no metadata", theirID, "", metadata{"vapp": ""}, false},
		{"a marker of another cluster takes precedence over metadata", theirID, marked(otherID), metadata{"vapp": theirID}, false},
		{"metadata of a cluster that CAPVCD did not create", "id", "", metadata{"vapp": "id"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			vApp := vcd.VApp{Ref: vcd.Ref{ID: "vapp"}, Description: tt.description}

			owns, err := marks.OwnsVApp(t.Context(), tt.metadata, tt.cluster, vApp)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(owns).To(Equal(tt.want))
		})
	}
}

func TestOwnsUnmarkedVM(t *testing.T) {
	vm := vcd.VM{Description: "Auto-created VM"}
	vm.VApp.ID = "vapp"
	marked := vm
	marked.Description = vcd.Marker{Cluster: theirID, Machine: "m"}.String()
	outside := vm
	outside.VApp.ID = ""
	tests := []struct {
		name     string
		cluster  string
		vm       vcd.VM
		metadata metadata
		want     bool
	}{
		{"in a vApp that CAPVCD created for the cluster", theirID, vm, metadata{"vapp": theirID}, true},
		{"in a vApp of another cluster", theirID, vm, metadata{"vapp": otherID}, false},
		{"a VM with a marker, which takes precedence", theirID, marked, nil, false},
		{"a VM outside a vApp", theirID, outside, nil, false},
		{"a cluster that CAPVCD did not create", "id", vm, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			owns, err := marks.OwnsUnmarkedVM(t.Context(), tt.metadata, tt.cluster, tt.vm)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(owns).To(Equal(tt.want))
		})
	}
}
