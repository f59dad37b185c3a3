// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/metadata"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileVAppMetadata makes sure that the vApps of the cluster have the metadata of the spec. Written entries are
// recorded, so that no requests are sent without a change, and that entries of others are not removed. A zone that
// cannot be queried does not delay the others.
func reconcileVAppMetadata(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if len(c.Spec.VAppMetadata) == 0 && len(c.Spec.RecordedState.VAppMetadata) == 0 {
		return phases.Obsolete, nil
	}
	places := s.places()
	var all first
	for _, home := range places.homes() {
		records := vAppRecords{
			vcdCluster:  c,
			clusterName: places.clusterName,
			zone:        home.Zone,
		}
		if !records.created() {
			continue // The first machine triggers another pass when it records that it needs a vApp.
		}
		for number := range records.count() {
			w := &vAppMetadataWriter{
				vcdCluster: c,
				save:       s.store.patcher.Save,
				wake:       s.wake,
				home:       home,
				number:     number + 1,
			}
			all.add(w.run(ctx, places))
		}
	}
	return all.out, all.err
}

// isLoggedIn reports whether an earlier phase has logged in, and the cluster may have vApps.
func isLoggedIn(s *scope) bool {
	return s.session != nil && s.vcdCluster.Spec.InfraID != "" && !vapp.PerMachine(s.vcdCluster)
}

// A vAppMetadataWriter writes metadata of one vApp.
type vAppMetadataWriter struct {
	vcdCluster *infrav1.VCDCluster
	save       func(context.Context) error // stores the recorded state of the VCDCluster
	wake       func()                      // triggers another reconcile
	home       vapp.Home
	number     int // of the vApp in its home
}

// run takes the next step towards the metadata of the spec.
func (w *vAppMetadataWriter) run(ctx context.Context, in places) (phases.Result, error) {
	desired := metadata.Desired(w.vcdCluster.Spec.VAppMetadata)
	recordedID, record := w.recorded()
	if isComplete(record, desired) {
		return phases.Done, nil
	}
	at, out, err := in.open(ctx, w.home)
	if err != nil || out != phases.Done {
		return out, err
	}
	ended, out := w.settle(at, recordedID)
	if out != phases.Done {
		return out, nil
	}
	vApp, out, err := w.find(ctx, at, recordedID)
	if err != nil || out != phases.Done || vApp.ID == "" {
		return out, err
	}
	if vApp.ID != recordedID {
		record = metadata.Record{} // of a vApp that was deleted
	}
	if ended || record.Open() || len(record.Obsolete(desired)) > 0 {
		if record, out, err = w.refresh(ctx, at, vApp, record); err != nil || out != phases.Done {
			return out, err
		}
	}
	return w.write(ctx, at, vApp, record, desired)
}

// isComplete reports whether all desired entries, and no others, are written.
func isComplete(record metadata.Record, desired []vcd.MetadataEntry) bool {
	return !record.Open() && len(record.Missing(desired)) == 0 && len(record.Obsolete(desired)) == 0
}

// refresh updates the record with the metadata of the vApp.
func (w *vAppMetadataWriter) refresh(ctx context.Context, at place, vApp vcd.VApp, record metadata.Record) (
	metadata.Record, phases.Result, error,
) {
	now, err := at.session.VAppMetadata(ctx, vApp.ID)
	if err != nil {
		out, err := problems.OfRead(err, "Reading the metadata of vApp "+vApp.Name)
		return record, out, err
	}
	record = record.Seen(now)
	w.record(vApp.ID, record)
	return record, phases.Done, nil
}

// taskKey returns the key in the session of the task that writes metadata of a vApp.
func (w *vAppMetadataWriter) taskKey(id string) string {
	return string(w.vcdCluster.UID) + "/metadata/" + id
}

// settle waits for the task of the last write. It reports whether the task has ended since the last call.
func (w *vAppMetadataWriter) settle(at place, id string) (ended bool, out phases.Result) {
	task, ok := at.session.Task(w.taskKey(id))
	if !ok {
		return false, phases.Done
	}
	if task.State == vcd.TaskRunning {
		return false, writingVAppMetadata()
	}
	at.session.Forget(w.taskKey(id))
	if task.State == vcd.TaskFailed {
		return false, problems.OfTask(task, "Writing metadata of vApp "+id)
	}
	return true, phases.Done
}

func writingVAppMetadata() phases.Result {
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Writing metadata of the vApp: waiting for VCD")
}

// find returns the vApp, which may have been renamed, and verifies that it belongs to the cluster and that no task locks
// it. A vApp that does not exist has no metadata: if the spec has none either, find returns a vApp without an ID.
func (w *vAppMetadataWriter) find(ctx context.Context, at place, id string) (vcd.VApp, phases.Result, error) {
	name := vapp.Numbered(at.First, w.number)
	vApp, err := w.read(ctx, at, id, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound) && len(w.vcdCluster.Spec.VAppMetadata) == 0:
		w.record("", nil)
		return vcd.VApp{}, phases.Done, nil
	case errors.Is(err, vcd.ErrNotFound):
		return vApp, phases.Wait(intervals.Remedy, infrav1.VAppUnverifiedReason,
			"vApp %s does not exist yet: its first machine creates it", name), nil
	case err != nil:
		out, err := problems.OfRead(err, "Reading vApp "+name)
		return vApp, out, err
	}
	owns, err := marks.OwnsVApp(ctx, at.session, w.vcdCluster.Spec.InfraID, vApp)
	switch {
	case err != nil:
		out, err := problems.OfRead(err, "Reading the metadata of vApp "+name)
		return vApp, out, err
	case !owns:
		return vApp, phases.Fail(intervals.Remedy, infrav1.NameConflictReason,
			"vApp %s does not belong to this cluster, so its metadata is not changed: rename or delete it in VCD",
			vApp.Name), nil
	case len(vApp.Tasks) > 0:
		return vApp, phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	}
	return vApp, phases.Done, nil
}

// read reads the vApp with a recorded URN. If there is none, or VCD does not show it, read finds the vApp by name.
func (w *vAppMetadataWriter) read(ctx context.Context, at place, id, name string) (vcd.VApp, error) {
	if id != "" {
		vApp, err := at.session.VApp(ctx, id)
		if !absence.Invisible(err) {
			return vApp, err
		}
	}
	return at.session.FindVApp(ctx, at.vdc, name)
}

// write writes the missing entries. If none are missing, it removes an entry that is no longer in the spec.
func (w *vAppMetadataWriter) write(ctx context.Context, at place, vApp vcd.VApp, record metadata.Record,
	desired []vcd.MetadataEntry,
) (phases.Result, error) {
	missing := record.Missing(desired)
	obsolete := record.Obsolete(desired)
	switch {
	case len(missing) > 0:
		w.record(vApp.ID, record.Ask(missing))
		if err := w.save(ctx); err != nil {
			return phases.Done, err
		}
		task, err := at.session.SetVAppMetadata(ctx, vApp.ID, missing)
		return w.started(at, vApp, task, err)
	case len(obsolete) > 0:
		key := obsolete[0]
		task, err := at.session.RemoveVAppMetadata(ctx, vApp.ID, key, record[key].Access)
		return w.started(at, vApp, task, err)
	}
	return phases.Done, nil
}

// started follows the task of a request, or returns why VCD rejected it.
func (w *vAppMetadataWriter) started(at place, vApp vcd.VApp, task vcd.Task, err error) (phases.Result, error) {
	if err != nil {
		return problems.OfWrite(err, "Writing metadata of vApp "+vApp.Name)
	}
	at.session.Follow(w.taskKey(vApp.ID), task, w.wake)
	return writingVAppMetadata(), nil
}

// recorded returns the URN of the vApp whose metadata was written, and the entries. Both are empty if none was.
func (w *vAppMetadataWriter) recorded() (id string, record metadata.Record) {
	entries := w.vcdCluster.Spec.RecordedState.VAppMetadata
	if i := slices.IndexFunc(entries, w.isOfVApp); i >= 0 {
		return entries[i].VAppID, metadata.RecordOf(entries[i].Entries)
	}
	return "", metadata.Record{}
}

func (w *vAppMetadataWriter) isOfVApp(entry infrav1.RecordedVAppMetadata) bool {
	return entry.Zone == w.home.Zone && int(entry.Number) == w.number
}

// record replaces the record of the vApp, which has the given URN. It does not save the VCDCluster.
func (w *vAppMetadataWriter) record(id string, record metadata.Record) {
	recorded := &w.vcdCluster.Spec.RecordedState
	kept := slices.DeleteFunc(slices.Clone(recorded.VAppMetadata), w.isOfVApp)
	if entries := record.Entries(); len(entries) > 0 {
		kept = append(kept, infrav1.RecordedVAppMetadata{
			VAppID:  id,
			Zone:    w.home.Zone,
			Number:  int32(w.number), //nolint:gosec // at most 100
			Entries: entries,
		})
	}
	recorded.VAppMetadata = kept
}
