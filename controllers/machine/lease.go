package machine

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// leaseMargin is how long before its end a lease is renewed; half of the lease, if that is less.
	leaseMargin = 72 * time.Hour
	// leaseRetry is the least time between two attempts.
	leaseRetry = 10 * time.Minute
)

// A renewal is the last attempt to renew a lease.
type renewal struct {
	at      time.Time
	problem string // why it failed
}

// renewals holds the last renewal of each vApp, which several machines may be in. The zero value is usable.
type renewals struct {
	mu     sync.Mutex
	byVApp map[string]renewal
}

// begin says whether the caller is the one to renew, now, the lease of a vApp that ends at end.
func (r *renewals) begin(vApp string, end, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.dueAt(vApp, end)) {
		return false
	}
	if r.byVApp == nil {
		r.byVApp = map[string]renewal{}
	}
	// Of an older renewal, the margin is more than half.
	maps.DeleteFunc(r.byVApp, func(_ string, last renewal) bool { return now.Sub(last.at) > 2*leaseMargin })
	r.byVApp[vApp] = renewal{at: now}
	return true
}

// failed notes why the renewal that was begun failed; an empty problem lets it be tried at once.
func (r *renewals) failed(vApp, problem string) {
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

// next returns when the lease of a vApp is to be renewed, and why it was not the last time.
func (r *renewals) next(vApp string, end time.Time) (due time.Time, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dueAt(vApp, end), r.byVApp[vApp].problem
}

func (r *renewals) dueAt(vApp string, end time.Time) time.Time {
	last, ok := r.byVApp[vApp]
	if !ok {
		return end.Add(-leaseMargin)
	}
	due, soonest := end.Add(-min(leaseMargin, end.Sub(last.at)/2)), last.at.Add(leaseRetry)
	if last.problem != "" || due.Before(soonest) {
		return soonest
	}
	return due
}

// watchLease renews the leases of the machine's vApp well before VCD stops its VMs, or deletes those of one that is stopped. We
// ask for leases that never end, so one that does is limited by the organisation. The inventory tells: nothing is asked for
// until it is time. A machine is no less ready for it.
func (s *scope) watchLease(ctx context.Context) {
	if s.record == nil || !s.cameUp() {
		return
	}
	vApp := s.record.VApp.ID
	end, what := leaseEnd(*s.record)
	if s.settleLease(vApp) {
		return
	}
	if end.IsZero() {
		conditions.Delete(s.vcdMachine, infrav1.LeaseUnlimitedCondition)
		return
	}
	if s.renewals.begin(vApp, end, s.now()) {
		s.renewLease(ctx, vApp)
	}
	due, problem := s.renewals.next(vApp, end)
	s.lookWithin(max(due.Sub(s.now()), session.BusyPoll))
	s.reportLease(end, what, problem)
}

// leaseEnd returns when the lease of a VM's vApp ends, zero if never, and what VCD does then.
func leaseEnd(record vcd.VMRecord) (end time.Time, what string) {
	if record.LeaseEnd.IsZero() || !record.StorageEnd.IsZero() && record.StorageEnd.Before(record.LeaseEnd) {
		return record.StorageEnd, "deletes"
	}
	return record.LeaseEnd, "stops"
}

// settleLease looks at the task of a renewal. It reports true when the inventory does not show yet what came of it.
func (s *scope) settleLease(vApp string) bool {
	t, ok := s.session.Task(leaseKey(vApp))
	switch {
	case !ok:
		return false
	case t.State == vcd.TaskRunning:
		s.lookWithin(session.TaskPoll)
		return true
	}
	s.session.Forget(leaseKey(vApp))
	s.session.Invalidate(s.placement.vdc)
	if t.State == vcd.TaskFailed {
		s.renewals.failed(vApp, t.Err.Error())
		return false
	}
	s.lookWithin(session.BusyPoll)
	return true
}

func leaseKey(vApp string) string { return "lease/" + vApp }

// renewLease asks for a lease that never ends, else for the same once more.
func (s *scope) renewLease(ctx context.Context, id string) {
	log := ctrl.LoggerFrom(ctx).WithValues("vApp", s.record.VApp.Name, "leaseEnd", s.record.LeaseEnd, "storageEnd", s.record.StorageEnd)
	log.Info("Renewing the lease")
	task, err := s.session.SetLease(ctx, id, 0, 0)
	if errors.Is(err, vcd.ErrInvalid) {
		var vApp vcd.VApp
		if vApp, err = s.session.VApp(ctx, id); err == nil {
			task, err = s.session.SetLease(ctx, id, vApp.RuntimeLease, vApp.StorageLease)
		}
	}
	switch {
	case errors.Is(err, vcd.ErrBusy), errors.Is(err, vcd.ErrLater):
		s.renewals.failed(id, "")
	case err != nil:
		log.Error(err, "Renewing the lease")
		s.renewals.failed(id, err.Error())
	default:
		s.session.Follow(leaseKey(id), task, s.wakeUps.ForObject(s.vcdMachine))
		s.lookWithin(session.TaskPoll)
	}
}

// reportLease tells when the lease ends, by a condition that is no part of Ready.
func (s *scope) reportLease(end time.Time, what, problem string) {
	if problem != "" {
		problem = "; renewing failed: " + problem
	}
	out := phases.Fail(0, infrav1.LeaseLimitedReason, "The organisation limits leases: VCD %s vApp %s on %s unless we renew its lease before%s; have the limit removed",
		what, s.record.VApp.Name, end.UTC().Format(time.RFC3339), problem)
	if !phases.Reported(s.vcdMachine, infrav1.LeaseUnlimitedCondition, out) {
		phases.ProblemFound(s.Recorder, s.vcdMachine, infrav1.LeaseUnlimitedCondition, out)
	}
	phases.Set(s.vcdMachine, infrav1.LeaseUnlimitedCondition, out.Status(), out.Reason, out.Message)
}
