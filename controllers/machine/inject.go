// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"maps"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileBootstrapInjected writes bootstrap data and network configuration to the VM, once.
func reconcileBootstrapInjected(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.hasRun() {
		return phases.Done, nil
	}
	i := newInjection(s)
	if out := i.disks.await(); out != phases.Done {
		return out, nil
	}
	out, ended := i.tasks.settle(stepHardware)
	if out.IsProblem() {
		s.vm.requestedHardware = hardware{} // VCD did not accept it.
	}
	if out != phases.Done {
		return out, nil
	}
	if ended {
		s.vm.requireReadNextPass()
		s.vm.beginPass()
	}
	if out, ended = i.tasks.settle(stepInject); out != phases.Done {
		return out, nil
	}
	if ended && s.vm.current() != nil {
		i.done()
	}
	return i.ensure(ctx)
}

// An injection writes the data that the guest needs to a VM that never ran.
type injection struct {
	live      client.Reader // for the bootstrap data
	session   *session.Session
	inputs    *inputs
	zone      *placement.Zone // nil: the machine has no zone
	target    *target
	bootstrap *bootstrapData // nil: not read in this pass
	vm        *vmState
	observer  observer
	disks     disks
	tasks     tasks
}

func newInjection(s *scope) *injection {
	return &injection{
		live:      s.reconciler.Live,
		session:   s.session,
		inputs:    &s.inputs,
		zone:      s.zone,
		target:    &s.target,
		bootstrap: s.bootstrap,
		vm:        s.vm,
		observer:  newObserver(s),
		disks:     newDisks(s),
		tasks:     newTasks(s),
	}
}

// ensure writes the data that the guest needs, unless the VM already has it.
func (i *injection) ensure(ctx context.Context) (phases.Result, error) {
	if out, err := i.observer.ensureRead(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if i.isDone() {
		return phases.Done, nil
	}
	return phases.Sequence(ctx, i.checkOff, i.checkExtraConfig, i.disks.prepare, i.reconfigureHardware, i.read, i.findNetworks, i.write)
}

// checkOff returns a problem if the VM was powered on before it had its bootstrap data.
func (i *injection) checkOff(context.Context) (phases.Result, error) {
	vm := i.vm.current()
	if vm.Status != vcd.StatusPoweredOn {
		return phases.Done, nil
	}
	return phases.Fail(intervals.Remedy, infrav1.PoweredOnTooEarlyReason,
		"VM %s was powered on before it had its bootstrap data: power it off in VCD", vm.Name), nil
}

// checkExtraConfig checks that the identity still allows the extra configuration of the machine.
func (i *injection) checkExtraConfig(context.Context) (phases.Result, error) {
	return extraConfigProblem(i.session, i.inputs.vcdMachine), nil
}

// isDone reports whether the VM has the machine's bootstrap data. Data that its template has from another machine or
// from its image does not count.
func (i *injection) isDone() bool {
	return guestinfo.IsFor(i.vm.current().ExtraConfig, i.inputs.vcdMachine.Spec.RecordedState.InstanceID)
}

// done adds the requested changes to the known VM. VCD made all of them, or the task would have failed. VCD may hide
// the result, because reading it requires a right.
func (i *injection) done() {
	if i.vm.current().ExtraConfig == nil {
		i.vm.current().ExtraConfig = map[string]string{}
	}
	maps.Copy(i.vm.current().ExtraConfig, i.vm.writtenMetadata)
	if len(i.vm.current().Disks) > 0 && i.vm.requestedDiskMiB > 0 {
		i.vm.current().Disks[0].SizeMiB = i.vm.requestedDiskMiB
	}
}

// reconfigureHardware gives a VM that never ran the hardware that it lacks. It does not immediately repeat a change that VCD accepted
// but did not make.
func (i *injection) reconfigureHardware(ctx context.Context) (phases.Result, error) {
	vm := i.vm.current()
	change := hardwareChange(i.inputs.vcdMachine, *vm, i.vm.requestedHardware)
	change.disks = len(i.disks.missing(*vm))
	if change == (hardware{}) {
		return phases.Done, nil
	}
	if i.vm.requestedHardware == change {
		i.vm.requestedHardware = hardware{}
		return i.tasks.failed(stepHardware, phases.Fail(0, infrav1.RequestRejectedReason,
			"VM %s does not have the CPUs, memory, hardware version, additional disks or IOPS of the spec, although VCD accepted them: it has %d CPUs, %d MiB, %s, %d disks and %d IOPS of the first one",
			vm.Name, vm.CPUs, vm.MemoryMiB, vm.HardwareVersion, len(vm.Disks), ptr.Deref(drift.FirstDisk(*vm).IOPS, 0))), nil
	}
	return i.tasks.write(stepHardware, func() (vcd.Task, error) {
		task, err := i.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{
			CPUs:            change.cpus,
			MemoryMiB:       change.memoryMiB,
			HardwareVersion: change.version,
			NewDisks:        i.disks.missing(*vm),
			DiskIOPS:        change.diskIOPS,
		})
		if err == nil {
			i.vm.requestedHardware = change
		}
		return task, err
	})
}

// read reads the bootstrap data, unless this pass already did.
func (i *injection) read(ctx context.Context) (out phases.Result, err error) {
	if i.bootstrap == nil {
		name := ptr.Deref(i.inputs.machine.Spec.Bootstrap.DataSecretName, "")
		i.bootstrap, out, err = readBootstrap(ctx, i.live, i.inputs.vcdMachine, name)
	}
	return out, err
}

// write writes the bootstrap data, the network configuration and the size of the first disk.
func (i *injection) write(ctx context.Context) (phases.Result, error) {
	guestNICs, out := i.guestNICs()
	if out != phases.Done {
		return out, nil
	}
	values, err := guestinfo.Render(i.input(guestNICs))
	if err != nil {
		return renderProblem(err), nil
	}
	maps.Copy(values, guestinfo.Leftovers(i.vm.current().ExtraConfig, values))
	for _, entry := range i.inputs.vcdMachine.Spec.ExtraConfig {
		values[entry.Key] = entry.Value
	}
	change := vcd.VMChange{ExtraConfig: values}
	if desired := sizes.Disk(&i.inputs.vcdMachine.Spec); len(i.vm.current().Disks) > 0 && desired > i.vm.current().Disks[0].SizeMiB {
		change.DiskMiB = desired
	}
	return i.tasks.write(stepInject, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Writing bootstrap data", "vmID", i.vm.current().ID, "diskMiB", change.DiskMiB)
		i.vm.requestedDiskMiB = change.DiskMiB
		i.vm.writtenMetadata = guestinfo.Metadata(values)
		return i.session.ReconfigureVM(ctx, i.vm.current().ID, change)
	})
}

// renderProblem returns why the guest cannot be configured.
func renderProblem(err error) phases.Result {
	reason := infrav1.BootstrapDataInvalidReason
	if _, ok := errors.AsType[*guestinfo.TooLargeError](err); ok {
		reason = infrav1.BootstrapDataTooLargeReason
	}
	return phases.Fail(intervals.Remedy, reason, "The guest cannot be configured: %v", err)
}

// input returns the data from which the configuration of the guest is rendered.
func (i *injection) input(guestNICs []guestinfo.NIC) guestinfo.Input {
	in := guestinfo.Input{
		InstanceID:    i.inputs.vcdMachine.Spec.RecordedState.InstanceID,
		Hostname:      i.inputs.vcdMachine.Spec.RecordedState.VMName, // The VM may have been renamed.
		ProviderID:    i.inputs.vcdMachine.Spec.ProviderID,
		Format:        i.bootstrap.format,
		BootstrapData: i.bootstrap.value,
		NICs:          guestNICs,
	}
	if i.zone != nil {
		in.Region = i.zone.Domain.Spec.Region
		in.Zone = i.zone.Domain.Spec.Zone
	}
	return in
}
