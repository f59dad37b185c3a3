package vcd

import (
	"context"
	"fmt"
	"net/http"

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// maxDiskPages bounds how many pages of disks are read: a server that always offers another one stops us here.
const maxDiskPages = 100

// A NamedDisk is an independent disk of a VDC.
type NamedDisk struct {
	Ref

	Description string // carries the ownership marker
	Attached    bool   // to some VM
}

// Disks are the independent disks of VDCs.
type Disks struct{ *client }

// NamedDisks lists the independent disks of a VDC, of all owners.
func (d *Disks) NamedDisks(ctx context.Context, vdc VDC) ([]NamedDisk, error) {
	var disks []NamedDisk
	for page := 1; page <= maxDiskPages; page++ {
		var found types.QueryResultRecordsType
		if err := d.queryPage(ctx, "disk", allOf(term{"vdc", vdc.ID}), page, "name",
			&found); err != nil {
			return nil, fmt.Errorf("listing disks of VDC %s: %w", vdc.Name, err)
		}
		records := both(found.DiskRecord, found.AdminDiskRecord)
		for _, r := range records {
			disks = append(disks, NamedDisk{
				Ref: Ref{ID: urnOf(kindDisk, r.HREF), Name: r.Name}, Description: r.Description,
				Attached: r.IsAttached || r.AttachedVmCount > 0,
			})
		}
		if len(disks) >= int(found.Total) || len(records) == 0 {
			break
		}
	}
	return disks, nil
}

// DeleteNamedDisk starts deleting an independent disk, which must not be attached. What is on it is lost.
func (d *Disks) DeleteNamedDisk(ctx context.Context, id string) (Task, error) {
	return d.start(ctx, http.MethodDelete, pathOf(kindDisk, id), "", nil)
}
