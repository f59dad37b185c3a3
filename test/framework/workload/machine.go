// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

var _ vcdsim.Guest = &Workloads{}

// A Phase is the phase of a guest.
type Phase string

// The phases of a guest.
const (
	// PhaseOff means that the guest is powered off.
	PhaseOff Phase = "Off"
	// PhaseRefused means that the guest failed to start. Message contains the reason.
	PhaseRefused Phase = "Refused"
	// PhaseBooted means that the guest is up, but does not start Kubernetes.
	PhaseBooted Phase = "Booted"
	// PhaseBootstrapping means that kubeadm runs or waits. Message contains the reason.
	PhaseBootstrapping Phase = "Bootstrapping"
	// PhaseFailed means that the guest is up, but kubeadm failed. cloud-init does not run it again.
	PhaseFailed Phase = "Failed"
	// PhaseRunning means that the kubelet of the node runs.
	PhaseRunning Phase = "Running"
)

// A machine is a guest, with the state that its disk keeps between boots.
type machine struct {
	Machine

	// work is held while the guest boots, bootstraps or stops. It protects the fields that Workloads.lock does not.
	work sync.Mutex
	// instanceID is the instance that cloud-init has set up, or "" before the first boot.
	instanceID string
	plan       *plan
	// done means that kubeadm succeeded, and cluster is the resulting cluster.
	done    bool
	failure string
	cluster *cluster
	// host receives the reports of the guest since its last power-on.
	host vcdsim.GuestHost

	// The following fields are protected by Workloads.lock, like Machine. on counts power-ons, so that timers of an
	// earlier one have no effect. stop ends the background work since the last one.
	on      int
	powered bool
	stop    context.CancelFunc
}

// errWaiting is wrapped by errors about missing prerequisites, for which a joining guest waits.
var errWaiting = errors.New("waiting")

// PowerOn boots a guest. An error is the reason why the guest fails to start as configured; the report is valid
// nevertheless. If kubeadm must wait, it continues in the background: see Machine.
func (w *Workloads) PowerOn(ctx context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	m := w.machineFor(vm)
	m.work.Lock()
	defer m.work.Unlock()
	m.host = vm.Host
	if ctx.Err() != nil {
		return vcdsim.GuestReport{}, fmt.Errorf("booting %s: %w", vm.Name, context.Cause(ctx))
	}
	w.lock.Lock()
	m.on++
	m.powered = true
	w.lock.Unlock()

	id, err := readGuest(vm)
	if err != nil {
		w.setPhase(m, PhaseRefused, err.Error())
		return vcdsim.GuestReport{}, err
	}
	if m.instanceID != "" {
		return reportOf(vm, id), w.reboot(m, id)
	}
	return reportOf(vm, id), w.firstBoot(m, id, vm.KubernetesVersion) //nolint:contextcheck // background work of a guest outlives the call
}

// PowerOff stops a guest. Its control plane stops at once, but its node stays Ready for NotReadyAfter.
func (w *Workloads) PowerOff(_ context.Context, vmID string) {
	if m := w.machineOf(vmID); m != nil {
		m.work.Lock()
		defer m.work.Unlock()
		w.powerOff(m)
	}
}

// Delete removes a guest. Its Node remains until it is deleted. A cluster ends with its last control plane node.
func (w *Workloads) Delete(_ context.Context, vmID string) {
	m := w.machineOf(vmID)
	if m == nil {
		return
	}
	m.work.Lock()
	defer m.work.Unlock()
	w.lock.Lock()
	delete(w.machines, vmID)
	w.lock.Unlock()
	w.powerOff(m)
	if m.done && m.plan.controlPlane {
		w.leaveCluster(m)
	}
}

func (w *Workloads) machineFor(vm vcdsim.GuestVM) *machine {
	w.lock.Lock()
	defer w.lock.Unlock()
	m, found := w.machines[vm.ID]
	if !found {
		m = &machine{Machine: Machine{VMID: vm.ID, VMName: vm.Name, Phase: PhaseOff}}
		w.machines[vm.ID] = m
	}
	return m
}

// machineOf cancels the background work of a guest and returns the guest, or nil if it does not exist.
func (w *Workloads) machineOf(vmID string) *machine {
	w.lock.Lock()
	defer w.lock.Unlock()
	m := w.machines[vmID]
	if m != nil && m.stop != nil {
		m.stop()
	}
	return m
}

func (w *Workloads) powerOff(m *machine) {
	w.lock.Lock()
	was := m.powered
	boot := m.on
	m.powered = false
	if m.Phase == PhaseBootstrapping {
		m.failure = "the first boot was interrupted by a power-off and cloud-init does not run it again"
	}
	w.lock.Unlock()
	if !was {
		return
	}
	w.setPhase(m, PhaseOff, "")
	if m.done {
		w.nodeDown(m, boot)
	}
}

// firstBoot applies user data, once per instance.
func (w *Workloads) firstBoot(m *machine, id guest.Identity, version string) (err error) {
	m.instanceID = id.InstanceID
	if id.Userdata == nil {
		w.setPhase(m, PhaseBooted, "no user data: nothing to do on the first boot")
		return nil
	}
	if m.plan, err = planFor(id, version); err != nil {
		return w.fail(m, err)
	}
	if m.plan == nil {
		w.setPhase(m, PhaseBooted, "user data starts no kubeadm")
		return nil
	}
	return w.bootstrap(m)
}

// reboot starts what the first boot has set up. cloud-init does nothing for a known instance.
func (w *Workloads) reboot(m *machine, id guest.Identity) error {
	switch {
	case m.instanceID != id.InstanceID:
		err := fmt.Errorf("instance-id changed from %s to %s: cloud-init would set the guest up again", m.instanceID,
			id.InstanceID)
		w.setPhase(m, PhaseRefused, err.Error())
		return err
	case m.done:
		return w.nodeUp(m)
	case m.failure != "":
		w.setPhase(m, PhaseFailed, m.failure)
	default:
		w.setPhase(m, PhaseBooted, "rebooted")
	}
	return nil
}

// fail records that kubeadm failed permanently.
func (w *Workloads) fail(m *machine, err error) error {
	w.lock.Lock()
	m.failure = err.Error()
	w.lock.Unlock()
	w.setPhase(m, PhaseFailed, err.Error())
	return err
}

func (w *Workloads) setPhase(m *machine, phase Phase, message string) {
	w.lock.Lock()
	changed := m.Phase != phase || m.Message != message
	m.Phase = phase
	m.Message = message
	w.lock.Unlock()
	if changed {
		w.options.Log.Info("Guest", "vm", m.VMName, "phase", string(phase), "message", message)
	}
}

// bootstrap runs kubeadm, in the background if it must wait.
func (w *Workloads) bootstrap(m *machine) error {
	if err := w.check(m.plan); err != nil && !errors.Is(err, errWaiting) {
		return w.fail(m, err)
	}
	if w.options.BootstrapTime == 0 {
		err := w.kubeadm(m)
		if !errors.Is(err, errWaiting) {
			return err
		}
	} else {
		w.setPhase(m, PhaseBootstrapping, "kubeadm runs")
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.lock.Lock()
	m.stop = cancel
	w.lock.Unlock()
	w.jobs.Go(func() {
		defer cancel()
		w.bootstrapLater(ctx, m)
	})
	return nil
}

func (w *Workloads) bootstrapLater(ctx context.Context, m *machine) {
	if !sleep(ctx, w.options.BootstrapTime) {
		return
	}
	deadline := time.Now().Add(w.options.JoinTimeout)
	for retry := true; retry; {
		retry = w.attempt(ctx, m, deadline) && sleep(ctx, w.options.RetryEvery)
	}
}

// attempt runs kubeadm again and reports whether to retry.
func (w *Workloads) attempt(ctx context.Context, m *machine, deadline time.Time) (retry bool) {
	m.work.Lock()
	defer m.work.Unlock()
	if ctx.Err() != nil {
		return false
	}
	err := w.kubeadm(m)
	if !errors.Is(err, errWaiting) {
		return false
	}
	if time.Now().After(deadline) {
		_ = w.fail(m, fmt.Errorf("timed out: %w", err))
		return false
	}
	return true
}

// sleep waits, and reports whether the guest is still running.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
