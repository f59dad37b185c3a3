// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileReset resets the VM once for each reset that a VCDRemediation requests.
func reconcileReset(ctx context.Context, s *scope) (phases.Result, error) {
	r := reset{
		session:  s.session,
		inputs:   &s.inputs,
		observer: newObserver(s),
		records:  s.records,
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
	wanted := &s.inputs.vcdMachine.Spec.RecordedState.Reset
	if out, _ := r.tasks.settle(stepReset); out != phases.Done {
		return r.again(wanted, out), nil
	}
	if wanted.SentAt != nil {
		return phases.Done, nil
	}
	return r.send(ctx, wanted)
}

// A reset resets the VM of a machine for a VCDRemediation.
type reset struct {
	session  *session.Session
	inputs   *inputs
	observer observer
	records  *records
	tasks    tasks
	recorder events.EventRecorder
	now      func() time.Time
}

// send resets the VM. It records the reset before the request, so that neither a restart nor a lost response leads to a
// second one.
func (r reset) send(ctx context.Context, wanted *infrav1.RequestedReset) (phases.Result, error) {
	vm, out, err := r.observer.owned(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	request, possible := r.requestFor(vm.Status)
	if !possible {
		return powerProblem(vm.Status), nil
	}
	done, out := r.tasks.beginWrite(stepReset)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	wanted.SentAt = timeOf(r.now())
	if vm.Status == vcd.StatusPoweredOff {
		clearBootstrapDataRemoved(r.inputs.vcdMachine)
	}
	if err := r.records.patcher.Save(ctx); err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Resetting VM", "vmID", vm.ID, "number", wanted.Number)
	task, err := request(ctx, vm.ID)
	switch {
	case err == nil:
		vmReset(r.recorder, r.inputs.vcdMachine, wanted.Number)
	case startsNothing(err):
		wanted.SentAt = nil
	}
	out, err = r.tasks.started(stepReset, task, err)
	return r.again(wanted, out), err
}

// requestFor returns the request that makes a VM in a state boot. It reports false if the state allows no such request.
func (r reset) requestFor(status vcd.Status) (request func(context.Context, string) (vcd.Task, error), possible bool) {
	switch status {
	case vcd.StatusPoweredOn:
		return r.session.Reset, true
	case vcd.StatusPoweredOff:
		return r.session.PowerOn, true
	default:
		return nil, false
	}
}

// again makes the next pass repeat a reset that VCD rejected or did not carry out.
func (r reset) again(wanted *infrav1.RequestedReset, out phases.Result) phases.Result {
	if out.IsProblem() && !out.IsUnknown() {
		wanted.SentAt = nil
	}
	return out
}
