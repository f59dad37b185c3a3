// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Records stores on the machine, and on its cluster, what later passes and other machines must know.
type records struct {
	client  client.Client
	inputs  *inputs
	patcher *phases.Patcher // of the VCDMachine; set by open
}

// noteOnce stores a time in a record of the VCDMachine, if that has none. It is stored at once, rather than at the end of
// the pass.
func (r *records) noteOnce(ctx context.Context, record **metav1.Time, now time.Time) error {
	if *record != nil {
		return nil
	}
	*record = timeOf(now)
	return r.patcher.Save(ctx)
}

// timeOf returns a time as it is stored: without fractions of a second.
func timeOf(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t.UTC().Truncate(time.Second))) }

// noteVApp remembers that there was a vApp, and which, for the day when its cluster is deleted. A zone has one VDC: the
// vApp is not noted if another has replaced that of the machine.
func (r *records) noteVApp(ctx context.Context) error {
	if zone := r.inputs.zoneName(); zone != "" {
		vdc := r.inputs.vcdMachine.Spec.RecordedState.OVDCID
		if out := zones.Replaced(r.inputs.vcdCluster, zone, vdc); out != phases.Done {
			return nil
		}
		return r.noteInZone(ctx, zone, r.inputs.madeIn())
	}
	if err := r.noteVApps(ctx); err != nil {
		return err
	}
	known := notes.VApps(r.inputs.vcdCluster)
	id := r.inputs.madeIn()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	return r.patchClusterIfCurrent(ctx, infrav1.VAppsAnnotation, strings.Join(append(known, id), ","))
}

// noteVApps stores on the VCDCluster that it has vApps, and how many if there are several.
func (r *records) noteVApps(ctx context.Context) error {
	if zone := r.inputs.zoneName(); zone != "" {
		return r.noteInZone(ctx, zone, "")
	}
	known := r.inputs.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation]
	own := r.inputs.vAppNumber()
	switch {
	case own > vapp.Number(known):
		return r.noteOnCluster(ctx, infrav1.VAppCreatedAnnotation, strconv.Itoa(own))
	case known == "":
		return r.noteOnCluster(ctx, infrav1.VAppCreatedAnnotation, "true")
	}
	return nil
}

// noteInZone stores on the VCDCluster what it has in a zone: the VDC, how many vApps, and the URN of one whose VM was
// deleted, if that is not empty.
func (r *records) noteInZone(ctx context.Context, zone, id string) error {
	home := vapp.HomeIn(r.inputs.vcdCluster, r.inputs.clusterName(), zone)
	_, before := home.Note()
	known := home.VDC != ""
	home.VDC = r.inputs.vcdMachine.Spec.RecordedState.OVDCID
	if !vapp.PerMachine(r.inputs.vcdCluster) { // Machines take vApps of their own with them.
		home.Count = max(home.Count, r.inputs.vAppNumber())
	}
	if id != "" && !slices.Contains(home.IDs, id) {
		home.IDs = append(home.IDs, id)
	}
	key, now := home.Note()
	switch {
	case now == before:
		return nil
	case !known && id == "":
		return r.patchCluster(ctx, key, now, client.MergeFrom(r.inputs.vcdCluster))
	}
	return r.patchClusterIfCurrent(ctx, key, now)
}

// maxNotedDisks bounds how many disks a cluster remembers: Kubernetes refuses objects with too many annotations, and
// with that the deletion of the machine.
const maxNotedDisks = 400

// noteDisk remembers that a disk outlives its VM, for the day when its cluster is deleted.
func (r *records) noteDisk(ctx context.Context, disk vcd.Ref) error {
	if len(notes.DetachedDisks(r.inputs.vcdCluster)) >= maxNotedDisks {
		return nil
	}
	id := disk.ID[strings.LastIndex(disk.ID, ":")+1:]
	return r.noteOnCluster(ctx, infrav1.DetachedDiskAnnotationPrefix+id, disk.Name)
}

// noteOnCluster stores an annotation on the VCDCluster, which outlives the machine.
func (r *records) noteOnCluster(ctx context.Context, key, value string) error {
	if r.inputs.vcdCluster.Annotations[key] == value {
		return nil
	}
	return r.patchCluster(ctx, key, value, client.MergeFrom(r.inputs.vcdCluster))
}

// patchClusterIfCurrent stores an annotation on the VCDCluster that depends on what was read from it: of two machines
// that write at the same time, one gets a conflict and tries again.
func (r *records) patchClusterIfCurrent(ctx context.Context, key, value string) error {
	current := client.MergeFromWithOptions(r.inputs.vcdCluster, client.MergeFromWithOptimisticLock{})
	return r.patchCluster(ctx, key, value, current)
}

func (r *records) patchCluster(ctx context.Context, key, value string, change client.Patch) error {
	c := r.inputs.vcdCluster.DeepCopy()
	notes.Set(c, key, value)
	if err := r.client.Patch(ctx, c, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting %s on VCDCluster %s: %w", key, c.Name, err)
	}
	return nil
}
