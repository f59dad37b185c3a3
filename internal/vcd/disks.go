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

	Description string // carries the ownership marker
	Attached    bool   // to some VM
}

// Cluster returns the id of the cluster that a disk is of, as its description says: by our marker, or by nothing but
// the id, which is what VMware's CSI driver writes when it is given that. An id that a person chose could be any word,
// so that one must have a UUID in it. Empty if it is of none.
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

// Disks are the independent disks of VDCs.
type Disks struct{ client *api.Client }

// NamedDisks lists the independent disks of a VDC that the user is shown.
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

// DeleteNamedDisk starts deleting an independent disk, which must not be attached. What is on it is lost.
func (d *Disks) DeleteNamedDisk(ctx context.Context, id string) (Task, error) {
	return startXML(ctx, d.client, http.MethodDelete, urn.Path(urn.Disk, id), "", nil)
}
