// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A NamedDisk is an independent disk of a VDC.
type NamedDisk struct {
	Ref

	Description string // contains the ownership marker
	Attached    bool   // attached to a VM
}

// Cluster returns the ID of the cluster that owns the disk, or the empty string if the description names no cluster.
// The description contains either an ownership marker or only the ID, which VMware's CSI driver writes if it is
// configured with one. An ID without a marker must contain a UUID, because an ID that a person chose could be any word.
func (d NamedDisk) Cluster() string {
	if marker, ok := ParseMarker(d.Description); ok {
		return marker.Cluster
	}
	text := strings.TrimSpace(d.Description)
	if urn.UUIDPattern.MatchString(text) && !strings.ContainsAny(text, " \t\n") {
		return text
	}
	return ""
}

// Disks is the client for the independent disks of VDCs.
type Disks struct{ client *api.Client }

// NamedDisks lists the independent disks of a VDC that are visible to the user.
func (d *Disks) NamedDisks(ctx context.Context, vdc VDC) ([]NamedDisk, error) {
	records, err := api.QueryAll(ctx, d.client, "disk", "disks", fiql.AllOf(fiql.Is("vdc", vdc.ID)), "name",
		func(r *types.DiskRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.DiskRecordType) {
			return found.DiskRecord, found.AdminDiskRecord
		})
	disks := make([]NamedDisk, 0, len(records))
	for _, r := range records {
		disks = append(disks, NamedDisk{
			Ref:         Ref{ID: urn.Of(urn.Disk, r.HREF), Name: r.Name},
			Description: r.Description,
			Attached:    r.IsAttached || r.AttachedVmCount > 0,
		})
	}
	return disks, failure.Wrap(err, "listing disks of VDC", vdc.Name)
}

// DeleteNamedDisk starts the deletion of an independent disk, which must not be attached. Its data is lost.
func (d *Disks) DeleteNamedDisk(ctx context.Context, id string) (Task, error) {
	return startXML(ctx, d.client, http.MethodDelete, urn.Path(urn.Disk, id), "", nil)
}
