// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// bootstrapData is what the bootstrap provider wants the guest to get.
type bootstrapData struct {
	value  []byte
	format guestinfo.Format
}

// Injection writes bootstrap data to the VM.
type injection struct{ scope *scope }

// reconcileBootstrapReady waits for the bootstrap data and checks that it fits, before anything is created.
func reconcileBootstrapReady(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.inputs.cameUp() {
		return phases.Done, nil
	}
	if !ptr.Deref(s.inputs.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return phases.Wait(0, infrav1.WaitingForClusterReason, "Waiting for the infrastructure of the Cluster"), nil
	}
	name := ptr.Deref(s.inputs.machine.Spec.Bootstrap.DataSecretName, "")
	if name == "" {
		return phases.Wait(0, infrav1.WaitingForBootstrapDataReason,
			"Waiting for the bootstrap provider, or for the control plane to be initialized"), nil
	}
	if s.state.bootstrapChecked == name {
		return phases.Done, nil
	}
	out, err := s.injection.read(ctx, name)
	if err == nil && out == phases.Done {
		s.state.bootstrapChecked = name
	}
	return out, err
}

// read reads the bootstrap data, and returns why it cannot be used.
func (s injection) read(ctx context.Context, name string) (phases.Outcome, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.scope.inputs.vcdMachine.Namespace, Name: name}
	err := s.scope.reconciler.Live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Fail(session.RemedyPoll, infrav1.WaitingForBootstrapDataReason,
			"Secret %s, which spec.bootstrap.dataSecretName of the Machine names, does not exist", name), nil
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	s.scope.inputs.bootstrap = &bootstrapData{value: secret.Data["value"], format: guestinfo.Format(secret.Data["format"])}
	return s.problem(name), nil
}

// problem says why bootstrap data cannot be used. It quotes nothing of it.
func (s injection) problem(secret string) phases.Outcome {
	b := s.scope.inputs.bootstrap
	if len(b.value) == 0 {
		return phases.Fail(session.RemedyPoll, infrav1.BootstrapDataInvalidReason,
			"Secret %s has no bootstrap data in key value", secret)
	}
	switch b.format {
	case guestinfo.FormatCloudConfig, guestinfo.FormatIgnition, "":
	default:
		return phases.Fail(session.RemedyPoll, infrav1.BootstrapDataInvalidReason,
			"Secret %s has an unknown format: use cloud-config or ignition in spec.format of the bootstrap config",
			secret)
	}
	if out := s.networkProblem(secret); out != phases.Done {
		return out
	}
	if err := guestinfo.CheckSize(b.value); err != nil {
		return phases.Fail(session.RemedyPoll, infrav1.BootstrapDataTooLargeReason,
			"Bootstrap data in Secret %s (files and commands of the bootstrap config): %v", secret, err)
	}
	return phases.Done
}

// networkProblem says why the guest would have no address: Ignition does not read the network configuration that
// cloud-init takes from guestinfo.metadata.
func (s injection) networkProblem(secret string) phases.Outcome {
	b := s.scope.inputs.bootstrap
	if b.format != guestinfo.FormatIgnition || guestinfo.ConfiguresNetwork(b.value) {
		return phases.Done
	}
	i, source := nics.NotDHCP(s.scope.inputs.vcdMachine)
	if source == "" {
		return phases.Done
	}
	return phases.Fail(session.RemedyPoll, infrav1.NotSupportedReason,
		"Bootstrap data in Secret %s has format ignition, which does not configure the address of NIC %d (addressSource "+
			"%s): set addressSource DHCP in spec.networks of the VCDMachineTemplate, or configure the NIC in the bootstrap "+
			"config, by a file in /etc/systemd/network or by a unit that reads %s",
		secret, i, source, guestinfo.KeyMetadata)
}

// reconcileBootstrapInjected writes bootstrap data and network configuration to the VM, once.
func reconcileBootstrapInjected(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.inputs.cameUp() {
		return phases.Done, nil
	}
	if out := s.disks.await(); out != phases.Done {
		return out, nil
	}
	out, ended := s.settle(stepHardware)
	if out != phases.Done {
		return out, nil
	}
	if ended {
		s.vm.forget()
		s.vm.begin()
	}
	if out, ended = s.settle(stepInject); out != phases.Done {
		return out, nil
	}
	if ended && s.vm.now() != nil {
		s.injection.done()
	}
	return s.injection.ensure(ctx)
}

// ensure writes what the guest needs to a VM that does not have it.
func (s injection) ensure(ctx context.Context) (phases.Outcome, error) {
	if out, err := s.scope.observer.ensureRead(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if s.scope.injection.isDone() {
		return phases.Done, nil
	}
	if s.scope.vm.now().Status == vcd.StatusPoweredOn {
		return phases.Fail(session.RemedyPoll, infrav1.PoweredOnEarlyReason,
			"VM %s was powered on before it had its bootstrap data: power it off in VCD", s.scope.vm.now().Name), nil
	}
	if out, err := s.scope.disks.prepare(ctx); err != nil || out != phases.Done {
		return out, err
	}
	change := hardwareChange(s.scope.inputs.vcdMachine, *s.scope.vm.now())
	change.disks = len(s.scope.disks.missing(*s.scope.vm.now()))
	if change != (hardware{}) {
		return s.equip(ctx, change)
	}
	return s.write(ctx)
}

// equip gives a VM that never ran the hardware that it lacks. What VCD accepted and did not do is not asked again at
// once.
func (s injection) equip(ctx context.Context, change hardware) (phases.Outcome, error) {
	vm := s.scope.vm.now()
	if s.scope.vm.askedHardware == change {
		s.scope.vm.askedHardware = hardware{}
		return s.scope.failed(stepHardware, phases.Fail(0, infrav1.RequestRefusedReason, "VCD does not give VM %s the "+
			"CPUs, memory, hardware version or additional disks of the spec, although it accepted them: it has %d "+
			"CPUs, %d MiB, %s and %d disks", vm.Name, vm.CPUs, vm.MemoryMiB, vm.HardwareVersion, len(vm.Disks))), nil
	}
	return s.scope.write(stepHardware, func() (vcd.Task, error) {
		s.scope.vm.askedHardware = change
		return s.scope.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{
			CPUs:            change.cpus,
			MemoryMiB:       change.memoryMiB,
			HardwareVersion: change.version,
			NewDisks:        s.scope.disks.missing(*vm),
		})
	})
}

// hardware is what is to be set of a VM; zero where it stays.
type hardware struct {
	cpus, memoryMiB int64
	version         string
	disks           int // how many are to be added
}

// hardwareChange returns what a VM that never ran lacks of what the machine asks for.
func hardwareChange(m *infrav1.VCDMachine, vm vcd.VM) hardware {
	var change hardware
	if wished := int64(m.Spec.CPUs); wished > 0 && wished != vm.CPUs {
		change.cpus = wished
	}
	if wished := int64(m.Spec.MemoryMiB); wished > 0 && wished != vm.MemoryMiB {
		change.memoryMiB = wished
	}
	if wished := m.Spec.HardwareVersion; wished != vm.HardwareVersion && vm.HardwareVersion != "" {
		change.version = wished
	}
	return change
}

// isDone reports whether the VM has the machine's bootstrap data. What its template has of another machine, or of its
// image, does not count.
func (s injection) isDone() bool {
	return guestinfo.IsFor(s.scope.vm.now().ExtraConfig, s.scope.inputs.vcdMachine.Annotations[infrav1.InstanceIDAnnotation])
}

// done notes that VCD did all that was asked, or the task would have failed. It may not show the result: that takes a
// right.
func (s injection) done() {
	if s.scope.vm.now().ExtraConfig == nil {
		s.scope.vm.now().ExtraConfig = map[string]string{}
	}
	maps.Copy(s.scope.vm.now().ExtraConfig, s.scope.vm.askedMetadata)
	if len(s.scope.vm.now().Disks) > 0 && s.scope.vm.askedDiskMiB > 0 {
		s.scope.vm.now().Disks[0].SizeMiB = s.scope.vm.askedDiskMiB
	}
}

func (s injection) write(ctx context.Context) (phases.Outcome, error) {
	if s.scope.inputs.bootstrap == nil {
		out, err := s.read(ctx, ptr.Deref(s.scope.inputs.machine.Spec.Bootstrap.DataSecretName, ""))
		if err != nil || out != phases.Done {
			return out, err
		}
	}
	if out, err := s.findNetworks(ctx); err != nil || out != phases.Done {
		return out, err
	}
	guestNICs, out := s.guestNICs()
	if out != phases.Done {
		return out, nil
	}
	values, err := guestinfo.Render(s.input(guestNICs))
	if err != nil {
		return renderProblem(err), nil
	}
	maps.Copy(values, guestinfo.Leftovers(s.scope.vm.now().ExtraConfig, values))
	change := vcd.VMChange{ExtraConfig: values}
	if wished := session.DiskMiB(s.scope.inputs.vcdMachine); len(s.scope.vm.now().Disks) > 0 && wished > s.scope.vm.now().Disks[0].SizeMiB {
		change.DiskMiB = wished
	}
	return s.scope.write(stepInject, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Writing bootstrap data", "vm", s.scope.vm.now().ID, "diskMiB", change.DiskMiB)
		s.scope.vm.askedDiskMiB = change.DiskMiB
		s.scope.vm.askedMetadata = guestinfo.Metadata(values)
		return s.scope.session.ReconfigureVM(ctx, s.scope.vm.now().ID, change)
	})
}

// renderProblem says why the guest cannot be configured.
func renderProblem(err error) phases.Outcome {
	reason := infrav1.BootstrapDataInvalidReason
	if _, ok := errors.AsType[*guestinfo.TooLargeError](err); ok {
		reason = infrav1.BootstrapDataTooLargeReason
	}
	return phases.Fail(session.RemedyPoll, reason, "The guest cannot be configured: %v", err)
}

// input returns what the guest shall know.
func (s injection) input(guestNICs []guestinfo.NIC) guestinfo.Input {
	in := guestinfo.Input{
		InstanceID:    s.scope.inputs.vcdMachine.Annotations[infrav1.InstanceIDAnnotation],
		Hostname:      s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation], // The VM may have been renamed.
		ProviderID:    s.scope.inputs.vcdMachine.Spec.ProviderID,
		Format:        s.scope.inputs.bootstrap.format,
		BootstrapData: s.scope.inputs.bootstrap.value,
		NICs:          guestNICs,
	}
	if s.scope.zone != nil {
		in.Region = s.scope.zone.Domain.Spec.Region
		in.Zone = s.scope.zone.Domain.Spec.Zone
	}
	return in
}

// findNetworks finds the networks of the NICs that the VM was made with. The zone or the cluster, whose networks NICs
// without a name of their own get, may name others by now.
func (s injection) findNetworks(ctx context.Context) (phases.Outcome, error) {
	p := &s.scope.placement
	vm := s.scope.vm.now()
	if made := len(vm.NICs); len(s.scope.inputs.vcdMachine.Spec.Networks) == 0 && made > 0 {
		p.nics = append(p.nics, make([]placement.NIC, max(0, made-len(p.nics)))...)[:made]
	}
	for i, wished := range p.nics {
		network, err := s.networkOf(ctx, i, wished)
		if err != nil {
			return session.LookupProblem(err, infrav1.NetworkNotFoundReason,
				"connect the network of NIC "+strconv.Itoa(i)+" of the VM to the VDC")
		}
		p.networks = append(p.networks, network)
	}
	return phases.Done, nil
}

// networkOf finds the network of a NIC of the VM: as wished if that is its network, or was before it was renamed.
func (s injection) networkOf(ctx context.Context, index int, wished placement.NIC) (vcd.Network, error) {
	network, err := s.scope.session.FindNetwork(ctx, s.scope.placement.vdc, wished.Network.Name)
	is, ok := nicOf(s.scope.vm.now(), index)
	if wished.Name != "" || !ok || err == nil && network.Name == is.Network {
		return network, err
	}
	if made, madeErr := s.scope.session.FindNetwork(ctx, s.scope.placement.vdc, is.Network); madeErr == nil || err != nil {
		return made, madeErr
	}
	return network, nil
}

// guestNICs returns the NICs as the guest shall see them.
func (s injection) guestNICs() ([]guestinfo.NIC, phases.Outcome) {
	var result []guestinfo.NIC
	for i, wished := range s.scope.placement.wished() {
		nic, ok := nicOf(s.scope.vm.now(), i)
		if !ok || nic.MAC == "" {
			s.scope.vm.forget()
			return nil, phases.Wait(session.TaskPoll, infrav1.WaitingForAddressReason,
				"Waiting for VCD to show NIC %d of VM %s", i, s.scope.vm.now().Name)
		}
		guest, out := wished.Guest(nic)
		if out != phases.Done {
			s.scope.vm.forget()
			return nil, out
		}
		result = append(result, guest)
	}
	return result, phases.Done
}

func nicOf(vm *vcd.VM, index int) (vcd.NIC, bool) {
	for _, nic := range vm.NICs {
		if nic.Index == index {
			return nic, true
		}
	}
	return vcd.NIC{}, false
}

// removedWhileOff is the value of the annotation after the VM was seen without bootstrap data while it was off: what
// the guest itself changes lasts only until then.
const removedWhileOff = "PoweredOff"

// reconcileBootstrapDataRemoved makes sure, once the guest has become a Node, that its bootstrap data is gone from the
// VM. The guest removes it itself; if it did not, or if it is back when the VM is off, we do.
func reconcileBootstrapDataRemoved(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch removed := s.inputs.vcdMachine.Annotations[infrav1.BootstrapDataRemovedAnnotation]; {
	case removed == removedWhileOff, removed != "" && !s.injection.isOff() && !s.injection.bootedSince(removed):
		return phases.Done, nil
	case s.vm.row == nil || s.inputs.machine == nil || !s.inputs.machine.Status.NodeRef.IsDefined():
		return phases.Wait(0, infrav1.WaitingForNodeReason, "Waiting for the guest to become a Node"), nil
	}
	if out, _ := s.settle(stepClear); out != phases.Done {
		return out, nil
	}
	return s.injection.clear(ctx)
}

func (s injection) isOff() bool {
	return s.scope.vm.row != nil && s.scope.vm.row.Status == vcd.StatusPoweredOff
}

// clear reads the VM, and removes its bootstrap data if it is there.
func (s injection) clear(ctx context.Context) (phases.Outcome, error) {
	vm, out, err := s.scope.observer.owned(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	switch {
	case !guestinfo.Redacted(vm.ExtraConfig):
	case vm.ExtraConfig[guestinfo.KeyMetadata] == "":
		return s.scope.failed(stepClear, phases.Unsure(0, infrav1.ExtraConfigHiddenReason, "VCD does not show the extra "+
			"configuration of VM %s, in which bootstrap data may still be: grant the user of the identity the right "+
			"to see it", vm.Name)), nil
	default:
		s.noteRemoved(vm)
		return phases.Done, nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	return s.scope.write(stepClear, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Removing bootstrap data that the guest left", "vm", vm.ID)
		task, err := s.scope.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{ExtraConfig: guestinfo.ClearUserdata()})
		if err == nil {
			bootstrapDataRemoved(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine)
		}
		return task, err
	})
}

// noteRemoved notes that a VM that was just read shows no bootstrap data.
func (s injection) noteRemoved(vm vcd.VM) {
	value := cmp.Or(s.bootID(), "true")
	if vm.Status == vcd.StatusPoweredOff {
		value = removedWhileOff
	}
	notes.Set(s.scope.inputs.vcdMachine, infrav1.BootstrapDataRemovedAnnotation, value)
}

// bootedSince reports whether the guest booted since bootstrap data was noted as removed. VCD's inventory does not show
// that a VM was powered off and on again, and what the guest changed is lost by that.
func (s injection) bootedSince(noted string) bool {
	now := s.bootID()
	return now != "" && now != noted
}

// bootID identifies the boot of the machine's Node; empty if it is not known.
func (s injection) bootID() string {
	if s.scope.inputs.machine == nil || s.scope.inputs.machine.Status.NodeInfo == nil {
		return ""
	}
	return s.scope.inputs.machine.Status.NodeInfo.BootID
}

// recheck forgets that the bootstrap data was removed if a VM that was read shows it again, as after a power cycle.
func (s injection) recheck(vm vcd.VM) {
	if !guestinfo.Redacted(vm.ExtraConfig) {
		delete(s.scope.inputs.vcdMachine.Annotations, infrav1.BootstrapDataRemovedAnnotation)
	}
}
