// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// records stores facts on the machine and its cluster that later passes and other machines need.
type records struct {
	client  client.Client
	inputs  *inputs
	patcher *phases.Patcher // of the VCDMachine; set by open
}

// saveTimeOnce stores a time in a field of the recorded state, unless the field is set. It saves the VCDMachine at once,
// not at the end of the pass.
func (r *records) saveTimeOnce(ctx context.Context, record **metav1.Time, now time.Time) error {
	if *record != nil {
		return nil
	}
	*record = timeOf(now)
	return r.patcher.Save(ctx)
}

// timeOf returns t as it is stored: in UTC, without fractions of a second.
func timeOf(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t.UTC().Truncate(time.Second))) }

// saveVAppID records on the VCDCluster that the vApp exists, and its URN, for the deletion of the cluster. A zone has one
// VDC: the vApp is not recorded if another VDC has replaced that of the machine.
func (r *records) saveVAppID(ctx context.Context) error {
	if zone := r.inputs.zoneName(); zone != "" {
		vdc := r.inputs.vcdMachine.Spec.RecordedState.OVDCID
		if out := zones.Replaced(r.inputs.vcdCluster, zone, vdc); out != phases.Done {
			return nil
		}
		return r.saveZoneRecord(ctx, zone, r.inputs.createdInVApp())
	}
	if err := r.saveVAppCount(ctx); err != nil {
		return err
	}
	known := r.inputs.vcdCluster.Spec.RecordedState.VAppIDs
	id := r.inputs.createdInVApp()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	return r.saveOnClusterIfCurrent(ctx, "vApp "+id, func(s *infrav1.VCDClusterRecordedState) {
		s.VAppIDs = append(slices.Clone(known), id)
	})
}

// saveVAppCount records on the VCDCluster that it has vApps, and their number if there are several.
func (r *records) saveVAppCount(ctx context.Context) error {
	if zone := r.inputs.zoneName(); zone != "" {
		return r.saveZoneRecord(ctx, zone, "")
	}
	own := int32(r.inputs.vAppNumber()) //nolint:gosec // at most 100
	if own <= r.inputs.vcdCluster.Spec.RecordedState.VAppCount {
		return nil
	}
	return r.saveOnCluster(ctx, "the number of vApps", func(s *infrav1.VCDClusterRecordedState) { s.VAppCount = own })
}

// saveZoneRecord records on the VCDCluster its resources in a zone: the VDC, the number of vApps and, unless id is empty,
// the URN of a vApp whose VM was deleted.
func (r *records) saveZoneRecord(ctx context.Context, zone, id string) error {
	before, known := r.inputs.vcdCluster.Spec.RecordedState.Zones[zone]
	now := before
	now.OVDCID = r.inputs.vcdMachine.Spec.RecordedState.OVDCID
	if !vapp.PerMachine(r.inputs.vcdCluster) { // A machine's own vApp is deleted with it.
		now.VAppCount = max(now.VAppCount, int32(r.inputs.vAppNumber())) //nolint:gosec // at most 100
	}
	if id != "" && !slices.Contains(now.VAppIDs, id) {
		now.VAppIDs = append(slices.Clone(now.VAppIDs), id)
	}
	record := func(s *infrav1.VCDClusterRecordedState) {
		if s.Zones == nil {
			s.Zones = map[string]infrav1.VCDClusterZoneRecord{}
		}
		s.Zones[zone] = now
	}
	switch {
	case equality.Semantic.DeepEqual(now, before):
		return nil
	case !known && id == "":
		return r.saveOnCluster(ctx, "zone "+zone, record)
	}
	return r.saveOnClusterIfCurrent(ctx, "zone "+zone, record)
}

// maxNotedDisks limits how many disks a cluster records. The API server would reject more, which would block the
// deletion of the machine.
const maxNotedDisks = 400

// saveDetachedDisk records on the VCDCluster that a disk outlives its VM, for the deletion of the cluster.
func (r *records) saveDetachedDisk(ctx context.Context, disk vcd.Ref) error {
	known := r.inputs.vcdCluster.Spec.RecordedState.DetachedDisks
	id := disk.ID[strings.LastIndex(disk.ID, ":")+1:]
	if known[id] == disk.Name || len(known) >= maxNotedDisks {
		return nil
	}
	return r.saveOnCluster(ctx, "disk "+disk.Name, func(s *infrav1.VCDClusterRecordedState) {
		if s.DetachedDisks == nil {
			s.DetachedDisks = map[string]string{}
		}
		s.DetachedDisks[id] = disk.Name
	})
}

// forgetVAppMetadata removes the record of the metadata of the machine's vApp from the VCDCluster. A vApp that is created
// again has none.
func (r *records) forgetVAppMetadata(ctx context.Context) error {
	known := r.inputs.vcdCluster.Spec.RecordedState.VAppMetadata
	left := slices.DeleteFunc(slices.Clone(known), func(entry infrav1.RecordedVAppMetadata) bool {
		return entry.Zone == r.inputs.zoneName() && int(entry.Number) == r.inputs.vAppNumber()
	})
	if len(left) == len(known) {
		return nil
	}
	return r.saveOnClusterIfCurrent(ctx, "the metadata of vApp "+r.inputs.vAppName(),
		func(s *infrav1.VCDClusterRecordedState) { s.VAppMetadata = left })
}

// saveOnCluster stores a record on the VCDCluster, which outlives the machine.
func (r *records) saveOnCluster(ctx context.Context, what string, record func(*infrav1.VCDClusterRecordedState)) error {
	return r.patchCluster(ctx, what, record, client.MergeFrom(r.inputs.vcdCluster))
}

// saveOnClusterIfCurrent stores a record on the VCDCluster that depends on its previous content. If two machines write at the
// same time, one gets a conflict and retries.
func (r *records) saveOnClusterIfCurrent(ctx context.Context, what string, record func(*infrav1.VCDClusterRecordedState)) error {
	current := client.MergeFromWithOptions(r.inputs.vcdCluster, client.MergeFromWithOptimisticLock{})
	return r.patchCluster(ctx, what, record, current)
}

func (r *records) patchCluster(ctx context.Context, what string, record func(*infrav1.VCDClusterRecordedState), change client.Patch) error {
	c := r.inputs.vcdCluster.DeepCopy()
	record(&c.Spec.RecordedState)
	if err := r.client.Patch(ctx, c, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording %s on VCDCluster %s: %w", what, c.Name, err)
	}
	return nil
}
