// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcilePower makes sure that the VM runs. It powers on a new VM in any case, and a VM that ran before only if
// spec.powerOffPolicy requests it.
func reconcilePower(ctx context.Context, s *scope) (phases.Result, error) {
	p := newPower(s)
	out, err := p.ensure(ctx)
	return p.shownOff(out), err
}

// power powers on the VM.
type power struct {
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	vm       *vmState
	observer observer
	records  *records
	tasks    tasks
	settled  *affinity.Settled // VMs that are in their required affinity and anti-affinity rules
	recorder events.EventRecorder
	now      func() time.Time
}

func newPower(s *scope) power {
	return power{
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		vm:       s.vm,
		observer: newObserver(s),
		records:  s.records,
		tasks:    newTasks(s),
		settled:  s.reconciler.Apart,
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
}

// ensure takes the next step toward a powered-on VM.
func (p power) ensure(ctx context.Context) (phases.Result, error) {
	out, ended := p.tasks.settle(stepPowerOn)
	if out != phases.Done {
		return p.explainRule(out), nil
	}
	if ended {
		vmPoweredOn(p.recorder, p.inputs.vcdMachine)
		p.markPoweredOn()
	}
	status := p.status()
	switch {
	case status == vcd.StatusPoweredOn:
		p.setPoweredOnAt()
		return phases.Done, nil
	case p.vm.listed != nil && p.vm.listed.Busy:
		p.session.Invalidate(p.vdc, p.inputs.vAppName()) // The next query shows the end of the task.
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s",
			p.vm.listed.Name), nil
	case !p.inputs.hasRun():
		return p.onFirst(ctx)
	case status == vcd.StatusPoweredOff && p.inputs.vcdMachine.Spec.PowerOffPolicy == infrav1.PowerOffPowerOn &&
		!p.mustStayOff():
		return p.powerOnAgain(ctx)
	}
	return powerProblem(status), nil
}

// setPoweredOnAt records when the VM was first seen powered on. The record is stored at the latest at the end of the pass,
// before the status that relies on it. If it is lost, the next pass sees the same.
func (p power) setPoweredOnAt() {
	if record := &p.inputs.vcdMachine.Spec.RecordedState; record.PoweredOnAt == nil {
		record.PoweredOnAt = timeOf(p.now())
	}
}

// shownOff corrects the result for a VM that VCD shows as powered off, but refuses to read or power on. VCD responded,
// so the missing access does not hide the state of the VM.
func (p power) shownOff(out phases.Result) phases.Result {
	if out.Reason != infrav1.ForbiddenReason || !p.vm.isOff() {
		return out
	}
	out = out.WithAccess()
	out.Message = "The VM is powered off: " + out.Message
	return out
}

// requiredGroup returns the group whose required rule determines the host of the VM, or the zero value if there is no such
// rule.
func (p power) requiredGroup() affinity.Group {
	if p.inputs.vcdCluster == nil || capicluster.ExternallyManaged(p.inputs.vcdCluster) {
		return affinity.Group{}
	}
	group := affinity.GroupOf(p.inputs.vcdMachine)
	if !group.Required {
		return affinity.Group{}
	}
	return group
}

// explainRule adds the likely cause to a problem with powering on a VM whose host a required rule determines.
func (p power) explainRule(out phases.Result) phases.Result {
	group := p.requiredGroup()
	switch {
	case !out.IsProblem() || group.Name == "":
	case group.Together:
		out.Message += ". spec.affinity of the VCDMachines is Required for group " + p.inputs.vcdMachine.Spec.Affinity.Group +
			", so one host must have room for all its VMs: make room, or set Preferred"
	default:
		out.Message += ". spec.antiAffinity of the VCDMachines is Required for group " + group.Name +
			", so each of its VMs needs a separate host: add hosts, or set Preferred"
	}
	return out
}

// onFirst powers on a VM that never ran. An earlier phase read the VM when it wrote to it, and onFirst reads it again
// only if that failed. If a required rule determines the host of the VM, onFirst first waits until the VM is in the
// rule, because VCD checks rules when it powers on a VM.
func (p power) onFirst(ctx context.Context) (phases.Result, error) {
	if group := p.requiredGroup(); group.Name != "" &&
		!p.settled.Has(p.inputs.vcdCluster.UID, p.inputs.vmID(), p.tasks.wake) {
		return phases.Wait(intervals.Task, infrav1.WaitingForAffinityRuleReason,
			"Waiting for the VM to be in the rule of group %s: check %s of the VCDCluster", group.Name,
			infrav1.AffinityRulesReadyCondition), nil
	}
	if out, err := p.observer.ensureOwned(ctx); err != nil || out != phases.Done {
		return out, err
	}
	return p.on(ctx)
}

// on requests a power-on of the VM and follows its task.
func (p power) on(ctx context.Context) (phases.Result, error) {
	return p.tasks.write(stepPowerOn, func() (vcd.Task, error) { return p.powerOn(ctx) })
}

func (p power) powerOn(ctx context.Context) (vcd.Task, error) {
	ctrl.LoggerFrom(ctx).Info("Powering on VM", "vmID", p.inputs.vmID())
	return p.session.PowerOn(ctx, p.inputs.vmID())
}

// powerOnAgain powers on a VM that ran before. It saves the number of attempts before the request, so that neither a
// restart nor a lost response leads to more attempts.
func (p power) powerOnAgain(ctx context.Context) (phases.Result, error) {
	now := p.now()
	record := &p.inputs.vcdMachine.Spec.RecordedState
	past := revivalsOf(record.PoweredOnAgain)
	if left := past.wait(now); left > 0 {
		out := phases.Fail(min(left, intervals.Remedy), infrav1.VMPoweredOffReason,
			"The VM does not stay powered on. The provider powered it on %d times in a row and will retry later: check its guest and the tasks in VCD, or set spec.powerOffPolicy to Report", past.count)
		return out, nil
	}
	vm, out, err := p.observer.owned(ctx)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case len(vm.Tasks) > 0:
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name), nil
	}
	done, out := p.tasks.beginWrite(stepPowerOn)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	before := record.PoweredOnAgain
	next := past.next(now)
	record.PoweredOnAgain = next.record()
	clearBootstrapDataRemoved(p.inputs.vcdMachine)
	if err := p.records.patcher.Save(ctx); err != nil {
		return phases.Done, err
	}
	task, err := p.powerOn(ctx)
	if startsNothing(err) {
		record.PoweredOnAgain = before
	}
	if err != nil {
		return p.tasks.failedRequest(stepPowerOn, err)
	}
	vmPoweredOnAgain(p.recorder, p.inputs.vcdMachine, next.count)
	return p.tasks.start(stepPowerOn, task), nil
}

// mustStayOff reports whether the machine is about to be deleted, so that its VM stays off.
func (p power) mustStayOff() bool {
	return p.inputs.ownerIsDeleting() || p.inputs.vcdMachine.Spec.RecordedState.ShutdownRequestedAt != nil
}

// markPoweredOn sets the cached state of the VM after the task succeeded.
func (p power) markPoweredOn() {
	if vm := p.vm.current(); vm != nil {
		vm.Status = vcd.StatusPoweredOn
	}
	if p.vm.listed != nil {
		p.vm.listed.Status = vcd.StatusPoweredOn
	}
}

// status returns the state of the VM in the inventory, or as last read if the inventory does not contain the VM.
func (p power) status() vcd.Status {
	if p.vm.listed != nil {
		return p.vm.listed.Status
	}
	return p.vm.current().Status
}

// powerProblem returns the reason why a VM that ran before is not running.
func powerProblem(status vcd.Status) phases.Result {
	switch status {
	case vcd.StatusPoweredOff:
		return phases.Fail(intervals.Remedy, infrav1.VMPoweredOffReason,
			"The VM is powered off: power it on in VCD, or set spec.powerOffPolicy to PowerOn")
	case vcd.StatusSuspended, vcd.StatusPartiallySuspended:
		return phases.Fail(intervals.Remedy, infrav1.VMSuspendedReason, "The VM is suspended: resume it in VCD")
	case vcd.StatusFailedCreation, vcd.StatusResolved, vcd.StatusWaitingForInput, vcd.StatusInconsistent,
		vcd.StatusMixed, vcd.StatusPoweredOn:
		return phases.Fail(intervals.Remedy, infrav1.VMInconsistentReason,
			"VCD reports state %d of the VM: check it in VCD", status)
	case vcd.StatusUnresolved, vcd.StatusUnknown, vcd.StatusUnrecognized:
	}
	return phases.Unsure(intervals.Remedy, infrav1.VMInconsistentReason,
		"VCD reports an unknown state of the VM: check the connection of VCD to its vCenter")
}
