// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VAppMetadata reads the metadata of vApps.
type VAppMetadata interface {
	// MetadataValue returns a value of a vApp's metadata; empty if there is none, or the user may not see it.
	MetadataValue(ctx context.Context, vAppID, key string) (string, error)
}

// OwnsVApp reports whether a vApp is the cluster's. The marker in its description decides. CAPVCD wrote no marker: its
// vApps have the id of the cluster in their metadata, which is read only for a cluster of CAPVCD.
func OwnsVApp(ctx context.Context, metadata VAppMetadata, c *infrav1.VCDCluster, vApp vcd.VApp) (bool, error) {
	if marker, ok := vcd.ParseMarker(vApp.Description); ok {
		return marker.Cluster == c.Spec.InfraID, nil
	}
	return inMetadata(ctx, metadata, c, vApp.ID)
}

// OwnsUnmarkedVM reports whether a VM without any marker is in a vApp that CAPVCD made for the cluster: CAPVCD marked no
// VMs. Whose VM of the cluster it is, the caller proves by its recorded URN or by its name.
func OwnsUnmarkedVM(ctx context.Context, metadata VAppMetadata, c *infrav1.VCDCluster, vm vcd.VM) (bool, error) {
	if _, marked := vcd.ParseMarker(vm.Description); marked {
		return false, nil
	}
	return inMetadata(ctx, metadata, c, vm.VApp.ID)
}

func inMetadata(ctx context.Context, metadata VAppMetadata, c *infrav1.VCDCluster, vAppID string) (bool, error) {
	if !ByCAPVCD(c) || vAppID == "" {
		return false, nil
	}
	id, err := metadata.MetadataValue(ctx, vAppID, capvcd.MetadataKey)
	return err == nil && id == c.Spec.InfraID, err
}
