// SPDX-License-Identifier: Apache-2.0

// Package lease renews the leases of vApps before VCD stops their VMs, or deletes them.
package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// margin is how long before its end a lease is renewed, unless half of the lease is shorter.
	margin = 72 * time.Hour
	// retry is the minimum time between two attempts.
	retry = 10 * time.Minute
)

// Renewals holds the last renewal of each vApp, which may contain several machines. The zero value is ready to use.
type Renewals struct {
	mu     sync.Mutex
	byVApp map[string]renewal
}

// A renewal is the last attempt to renew a lease.
type renewal struct {
	at      time.Time
	problem string // why it failed; empty: it did not
}

// begin reports whether the caller must now renew the lease of a vApp that expires at end.
func (r *Renewals) begin(vApp string, end, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.dueAt(vApp, end)) {
		return false
	}
	if r.byVApp == nil {
		r.byVApp = map[string]renewal{}
	}
	// Renewals that are older than this leave more than half of the lease as margin.
	maps.DeleteFunc(r.byVApp, func(_ string, last renewal) bool { return now.Sub(last.at) > 2*margin })
	r.byVApp[vApp] = renewal{at: now}
	return true
}

// failed records why the current renewal failed. An empty problem allows another attempt at once.
func (r *Renewals) failed(vApp, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem == "" {
		delete(r.byVApp, vApp)
		return
	}
	if last, ok := r.byVApp[vApp]; ok {
		last.problem = problem
		r.byVApp[vApp] = last
	}
}

// next returns when the lease of a vApp is due for renewal, and why the last renewal failed.
func (r *Renewals) next(vApp string, end time.Time) (due time.Time, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dueAt(vApp, end), r.byVApp[vApp].problem
}

func (r *Renewals) dueAt(vApp string, end time.Time) time.Time {
	last, ok := r.byVApp[vApp]
	if !ok {
		return end.Add(-margin)
	}
	due := end.Add(-min(margin, end.Sub(last.at)/2))
	earliest := last.at.Add(retry)
	if last.problem != "" || due.Before(earliest) {
		return earliest
	}
	return due
}

// A Keeper renews the lease of the vApp that contains a machine's VM. The provider requests leases that never end, so a
// lease that ends was limited by the organization. The machine stays ready.
type Keeper struct {
	Renewals *Renewals

	Session  *session.Session
	Machine  *infrav1.VCDMachine
	Cluster  string // ID of the cluster, which marks its vApps
	VDC      vcd.VDC
	Row      vcd.VMRecord // of the VM in the inventory
	Recorder events.EventRecorder
	Wake     func() // called when a renewal has ended
	Now      time.Time
}

// Keep renews the lease if it is due, and sets a condition that does not count for Ready. It returns the delay before
// the next call; zero if none is needed.
func (k Keeper) Keep(ctx context.Context) time.Duration {
	if after, pending := k.settle(); pending {
		return after
	}
	end, what := k.end()
	if end.IsZero() {
		phases.Drop(k.Machine, infrav1.LeaseLimitedCondition)
		return 0
	}
	vApp := k.Row.VApp.ID
	requested := false
	if k.Renewals.begin(vApp, end, k.Now) {
		requested = k.renew(ctx)
	}
	due, problem := k.Renewals.next(vApp, end)
	k.report(end, what, problem)
	after := max(due.Sub(k.Now), intervals.Busy)
	if requested {
		after = min(after, intervals.Task)
	}
	return after
}

// end returns when the lease ends, and what VCD then does with the vApp. A zero time means never.
func (k Keeper) end() (end time.Time, what string) {
	row := k.Row
	if row.LeaseEnd.IsZero() || !row.StorageEnd.IsZero() && row.StorageEnd.Before(row.LeaseEnd) {
		return row.StorageEnd, "deletes"
	}
	return row.LeaseEnd, "stops"
}

// settle reports whether the inventory does not yet show the result of a renewal, and when to call again.
func (k Keeper) settle() (after time.Duration, pending bool) {
	key := k.key()
	t, ok := k.Session.Task(key)
	switch {
	case !ok:
		return 0, false
	case t.State == vcd.TaskRunning:
		return intervals.Task, true
	}
	k.Session.Forget(key)
	k.Session.InvalidateBefore(k.VDC, k.Row.VApp.Name, t.Noticed)
	if t.State == vcd.TaskFailed {
		k.Renewals.failed(k.Row.VApp.ID, t.Err.Error())
		return 0, false
	}
	return intervals.Busy, true
}

// key is the key of the renewal's task in the session.
func (k Keeper) key() string { return "lease/" + k.Row.VApp.ID }

// renew requests a new lease, and reports whether VCD accepted the request.
func (k Keeper) renew(ctx context.Context) bool {
	id := k.Row.VApp.ID
	log := ctrl.LoggerFrom(ctx).WithValues("vApp", k.Row.VApp.Name, "leaseEnd", k.Row.LeaseEnd, "storageEnd",
		k.Row.StorageEnd)
	log.Info("Renewing the lease")
	task, err := k.request(ctx, id)
	switch {
	case errors.Is(err, vcd.ErrBusy), errors.Is(err, vcd.ErrLater):
		k.Renewals.failed(id, "")
	case err != nil:
		log.Error(err, "Cannot renew the lease")
		k.Renewals.failed(id, err.Error())
	default:
		k.Session.Follow(k.key(), task, k.Wake)
	}
	return err == nil
}

// request requests a lease that never ends for a vApp of the cluster. If VCD rejects that, it requests the current
// lease again.
func (k Keeper) request(ctx context.Context, id string) (vcd.Task, error) {
	vApp, err := k.Session.VApp(ctx, id)
	if err != nil {
		return vcd.Task{}, err
	}
	owns, err := marks.OwnsVApp(ctx, k.Session, k.Cluster, vApp)
	if err != nil {
		return vcd.Task{}, err
	}
	if !owns {
		return vcd.Task{}, fmt.Errorf("vApp %s has no ownership marker of this cluster: %w", vApp.Name, vcd.ErrConflict)
	}
	task, err := k.Session.SetLease(ctx, id, 0, 0)
	if errors.Is(err, vcd.ErrInvalid) {
		return k.Session.SetLease(ctx, id, vApp.RuntimeLease, vApp.StorageLease)
	}
	return task, err
}

// report sets the condition, and records an event if its message changes.
func (k Keeper) report(end time.Time, what, problem string) {
	if problem != "" {
		problem = "; renewing failed: " + problem
	}
	phases.Report(k.Machine, infrav1.LeaseLimitedCondition, phases.Warn(infrav1.LeaseLimitedReason,
		"The organization limits leases: VCD %s vApp %s on %s unless the provider renews its lease before%s; ask the provider to remove the limit",
		what, k.Row.VApp.Name, end.UTC().Format(time.RFC3339), problem), k.Recorder)
}
