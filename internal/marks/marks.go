// SPDX-License-Identifier: Apache-2.0

// Package marks decides by what is in VCD which cluster a vApp or VM belongs to: by the marker of this provider, or by
// what CAPVCD wrote.
package marks

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VAppMetadata reads the metadata of vApps.
type VAppMetadata interface {
	// MetadataValue returns a value of a vApp's metadata; empty if there is none, or the user may not see it.
	MetadataValue(ctx context.Context, vAppID, key string) (string, error)
}

// OwnsVApp reports whether a vApp is that of the cluster with an id. The marker in its description decides. CAPVCD wrote
// no marker: its vApps have the id of the cluster in their metadata, which is read only for an id of CAPVCD.
func OwnsVApp(ctx context.Context, metadata VAppMetadata, cluster string, vApp vcd.VApp) (bool, error) {
	if marker, ok := vcd.ParseMarker(vApp.Description); ok {
		return marker.Cluster == cluster, nil
	}
	return inMetadata(ctx, metadata, cluster, vApp.ID)
}

// OwnsUnmarkedVM reports whether a VM without any marker is in a vApp that CAPVCD made for the cluster with an id: CAPVCD
// marked no VMs. Whose VM of the cluster it is, the caller proves by its recorded URN or by its name.
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
