// SPDX-License-Identifier: Apache-2.0

// Package marks decides which cluster a vApp or VM belongs to, by the marker of this provider or by the marks of CAPVCD
// in VCD.
package marks

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VAppMetadata reads the metadata of vApps.
type VAppMetadata interface {
	// MetadataValue returns a metadata value of a vApp. It is empty if the value does not exist or is not visible to
	// the user.
	MetadataValue(ctx context.Context, vAppID, key string) (string, error)
}

// OwnsVApp reports whether a vApp belongs to the cluster with an ID. The marker in its description decides. CAPVCD
// wrote no marker: its vApps have the ID of the cluster in their metadata, which are read only for an ID of CAPVCD.
func OwnsVApp(ctx context.Context, metadata VAppMetadata, cluster string, vApp vcd.VApp) (bool, error) {
	if marker, ok := vcd.ParseMarker(vApp.Description); ok {
		return marker.Cluster == cluster, nil
	}
	return inMetadata(ctx, metadata, cluster, vApp.ID)
}

// OwnsUnmarkedVM reports whether a VM without a marker is in a vApp that CAPVCD created for the cluster with an ID.
// CAPVCD marked no VMs. The caller proves which machine the VM belongs to, by its recorded URN or its name.
func OwnsUnmarkedVM(ctx context.Context, metadata VAppMetadata, cluster string, vm vcd.VM) (bool, error) {
	if _, marked := vcd.ParseMarker(vm.Description); marked {
		return false, nil
	}
	return inMetadata(ctx, metadata, cluster, vm.VApp.ID)
}

func inMetadata(ctx context.Context, metadata VAppMetadata, cluster, vAppID string) (bool, error) {
	if !capvcd.IsClusterID(cluster) || vAppID == "" {
		return false, nil
	}
	id, err := metadata.MetadataValue(ctx, vAppID, capvcd.MetadataKey)
	return err == nil && id == cluster, err
}
