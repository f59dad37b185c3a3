// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/metadata"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hasMetadata reports whether the VM should have metadata, or has metadata that the provider wrote.
func hasMetadata(m *infrav1.VCDMachine) bool {
	return len(m.Spec.VMMetadata) > 0 || len(m.Spec.RecordedState.VMMetadata) > 0
}

// reconcileMetadata makes sure that the VM has the metadata of the spec. Written entries are recorded, so that no
// requests are sent without a change, and that entries of others are not removed.
func reconcileMetadata(ctx context.Context, s *scope) (phases.Result, error) {
	if !hasMetadata(s.inputs.vcdMachine) {
		return phases.Obsolete, nil
	}
	t := newTasks(s)
	out, ended := t.settle(stepMetadata)
	if out != phases.Done {
		return out, nil
	}
	m := s.inputs.vcdMachine
	record := metadata.RecordOf(m.Spec.RecordedState.VMMetadata)
	if ended || record.Open() {
		now, err := s.session.Metadata(ctx, s.inputs.vmID())
		if err != nil {
			return problems.OfRead(err, "Reading metadata of the VM")
		}
		record = record.Seen(now)
		m.Spec.RecordedState.VMMetadata = record.Entries()
	}
	w := metadataWriter{
		session:  s.session,
		inputs:   &s.inputs,
		observer: newObserver(s),
		records:  s.records,
		tasks:    t,
	}
	return w.write(ctx, record)
}

// A metadataWriter writes metadata of the VM.
type metadataWriter struct {
	session  *session.Session
	inputs   *inputs
	observer observer
	records  *records
	tasks    tasks
}

// write writes the missing entries. If none are missing, it removes an entry that is no longer in the spec.
func (w metadataWriter) write(ctx context.Context, record metadata.Record) (phases.Result, error) {
	m := w.inputs.vcdMachine
	desired := metadata.Desired(m.Spec.VMMetadata)
	missing := record.Missing(desired)
	obsolete := record.Obsolete(desired)
	if len(missing) == 0 && len(obsolete) == 0 {
		return phases.Done, nil
	}
	if _, out, err := w.observer.owned(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if len(missing) > 0 {
		m.Spec.RecordedState.VMMetadata = record.Ask(missing).Entries()
		if err := w.records.patcher.Save(ctx); err != nil {
			return phases.Done, err
		}
		return w.tasks.write(stepMetadata, func() (vcd.Task, error) {
			return w.session.SetMetadata(ctx, w.inputs.vmID(), missing)
		})
	}
	return w.tasks.write(stepMetadata, func() (vcd.Task, error) {
		return w.session.RemoveMetadata(ctx, w.inputs.vmID(), obsolete[0], record[obsolete[0]].Access)
	})
}
