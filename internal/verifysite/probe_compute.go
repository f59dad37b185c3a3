// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// rightExtraConfig is the right to change any extra configuration of VMs.
const rightExtraConfig = "vApp: Allow All Extra Config"

// extraConfigTakesRight changes extra configuration as a user without that right.
func extraConfigTakesRight(ctx context.Context, b *bench) (outcome, error) {
	if reason, err := b.mustLack(ctx, rightExtraConfig); err != nil || reason != "" {
		return unknown(reason), err
	}
	if err := b.compose(ctx); err != nil {
		return outcome{}, err
	}
	err := b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.VMs.ReconfigureVM(ctx, b.vms[0],
			vcd.VMChange{ExtraConfig: map[string]string{"guestinfo.verify-site": b.run}})
	})
	if err == nil || refused(err) || errors.Is(err, vcd.ErrForbidden) {
		return is(err != nil, howExtraConfigRefused, howExtraConfigKept), nil
	}
	return outcome{}, err
}

// mustLack returns the reason why a probe cannot run that requires a user without some rights, or the empty text.
func (b *bench) mustLack(ctx context.Context, rights ...string) (Text, error) {
	has, known, err := b.session.Rights(ctx)
	switch {
	case err != nil:
		return "", err
	case b.session.IsProvider():
		return hasRight, nil
	case !known:
		return unknownRights, nil
	case slices.ContainsFunc(rights, func(right string) bool { return slices.Contains(has, right) }):
		return hasRight, nil
	}
	return "", nil
}

// emptyHardwareKeepsItems sends an empty hardware section.
func emptyHardwareKeepsItems(ctx context.Context, b *bench) (outcome, error) {
	id, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	before, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	err = b.calls.do(ctx, xmlCall(http.MethodPost, vmPath(id)+"/action/reconfigureVm", "vm", fmt.Sprintf(
		`<Vm %s name="%s"><Description>%s</Description><ovf:VirtualHardwareSection><ovf:Info>Hardware</ovf:Info>`+
			`</ovf:VirtualHardwareSection></Vm>`, namespaces, escaped(before.Name), escaped(markOf(b.run)))))
	if err != nil {
		return outcome{}, err
	}
	after, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	same := after.CPUs == before.CPUs && after.MemoryMiB == before.MemoryMiB && len(after.Disks) == len(before.Disks) &&
		len(after.NICs) == len(before.NICs)
	return is(same, howHardwareSame, howHardwareChanged), b.deleteSpares(ctx)
}

// probedMemory is a small change of memory, in MiB.
const probedMemory = 128

// runningVMKeepsHardware changes the memory of a running VM: it adds memory to a VM without hot add, and removes memory
// from one with hot add.
func runningVMKeepsHardware(ctx context.Context, b *bench) (outcome, error) {
	id, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	vm, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if err := b.powerOn(ctx, id); err != nil {
		return outcome{}, err
	}
	memory := vm.MemoryMiB + probedMemory
	if vm.MemoryHotAdd {
		memory = vm.MemoryMiB - probedMemory
	}
	err = b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.VMs.ReconfigureVM(ctx, id, vcd.VMChange{MemoryMiB: memory})
	})
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err != nil, howResizeRefused, howResizeAccepted), b.restore(ctx)
}

// deployedBlocksDelete deletes a VM that is powered off but still deployed.
func deployedBlocksDelete(ctx context.Context, b *bench) (outcome, error) {
	id, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	if err := b.powerOn(ctx, id); err != nil {
		return outcome{}, err
	}
	if err := b.calls.do(ctx, xmlCall(http.MethodPost, vmPath(id)+"/power/action/powerOff", "", "")); err != nil {
		return outcome{}, err
	}
	now, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if !now.Deployed || now.Status != vcd.StatusPoweredOff {
		return unknown(answeredUnknown), b.restore(ctx)
	}
	return b.tryDelete(ctx, id)
}

// tryDelete tries to delete a VM and reports, as a result, whether VCD rejects it.
func (b *bench) tryDelete(ctx context.Context, vm string) (outcome, error) {
	err := b.calls.do(ctx, xmlCall(http.MethodDelete, vmPath(vm), "", ""))
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err != nil, howDeleteRefused, howDeleteAccepted), b.restore(ctx)
}

// restore resets the vApp to the state that probes expect: undeployed, with only its two VMs.
func (b *bench) restore(ctx context.Context) error {
	if err := b.deleteSpares(ctx); err != nil {
		return err
	}
	return b.undeploy(ctx)
}

// vAppStaysDeployed starts and undeploys a VM, and then reads its vApp.
func vAppStaysDeployed(ctx context.Context, b *bench) (outcome, error) {
	if err := b.compose(ctx); err != nil {
		return outcome{}, err
	}
	if err := b.powerOn(ctx, b.vms[0]); err != nil {
		return outcome{}, err
	}
	if err := b.powerOff(ctx, b.vms[0]); err != nil {
		return outcome{}, err
	}
	now, err := b.session.VApps.VApp(ctx, b.vApp)
	if err != nil {
		return outcome{}, err
	}
	return is(now.Deployed, howDeployedRead, howDeployedRead), b.undeploy(ctx)
}

// attachedDiskBlocksDelete deletes a VM with an attached independent disk.
func attachedDiskBlocksDelete(ctx context.Context, b *bench) (outcome, error) {
	if err := b.created.add(kindDisk); err != nil {
		return outcome{}, err
	}
	vm, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	name := b.nextName("disk")
	err = b.calls.do(ctx, xmlCall(http.MethodPost, "/api/vdc/"+uuidOf(b.vdc.ID)+"/disk", "diskCreateParams", fmt.Sprintf(
		`<DiskCreateParams %s><Disk name="%s" sizeMb="16"><Description>%s</Description></Disk></DiskCreateParams>`,
		namespaces, name, markOf(b.run))))
	if err != nil {
		return outcome{}, err
	}
	disk, err := b.disk(ctx, name)
	if err != nil {
		return outcome{}, err
	}
	err = b.calls.do(ctx, xmlCall(http.MethodPost, vmPath(vm)+"/disk/action/attach", "diskAttachOrDetachParams", fmt.Sprintf(
		`<DiskAttachOrDetachParams %s><Disk href="%s"/></DiskAttachOrDetachParams>`,
		namespaces, b.session.Site()+diskPath(disk))))
	if err != nil {
		return outcome{}, err
	}
	err = b.calls.do(ctx, xmlCall(http.MethodDelete, vmPath(vm), "", ""))
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	blocks := err != nil
	if err := b.objects().detachDisks(ctx, Leftover{Run: b.run, id: b.vApp}); err != nil {
		return outcome{}, err
	}
	if err := b.sweep(ctx, kindDisk); err != nil {
		return outcome{}, err
	}
	return is(blocks, howDeleteRefused, howDeleteAccepted), b.deleteSpares(ctx)
}

// disk returns the URN of a disk in the VDC.
func (b *bench) disk(ctx context.Context, name string) (string, error) {
	disks, err := b.session.Disks.NamedDisks(ctx, b.vdc)
	if err != nil {
		return "", err
	}
	for _, d := range disks {
		if d.Name == name {
			return d.ID, nil
		}
	}
	return "", fmt.Errorf("disk %s is not in the VDC: %w", name, vcd.ErrNotFound)
}

// runningBlocksNetworkRemoval removes a network without NICs from a running vApp.
func runningBlocksNetworkRemoval(ctx context.Context, b *bench) (outcome, error) {
	if err := b.connectNetwork(ctx); err != nil {
		return outcome{}, err
	}
	if err := b.powerOn(ctx, b.vms[0]); err != nil {
		return outcome{}, err
	}
	got, err := b.tryDisconnect(ctx)
	if err != nil {
		return outcome{}, err
	}
	if err := b.powerOff(ctx, b.vms[0]); err != nil {
		return outcome{}, err
	}
	return got, b.undeploy(ctx)
}

// usedNetworkStays removes a network from a stopped vApp while a NIC is connected to it.
func usedNetworkStays(ctx context.Context, b *bench) (outcome, error) {
	if err := b.connectNetwork(ctx); err != nil {
		return outcome{}, err
	}
	if _, err := b.spare(ctx, b.nic()); err != nil {
		return outcome{}, err
	}
	got, err := b.tryDisconnect(ctx)
	if err != nil {
		return outcome{}, err
	}
	return got, b.deleteSpares(ctx)
}

// tryDisconnect removes all networks from the vApp and reports, as a result, whether VCD rejects it.
func (b *bench) tryDisconnect(ctx context.Context) (outcome, error) {
	err := b.calls.do(ctx, xmlCall(http.MethodPut, vAppPath(b.vApp)+"/networkConfigSection/", "networkConfigSection",
		`<NetworkConfigSection `+namespaces+`><ovf:Info>Networks</ovf:Info></NetworkConfigSection>`))
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err != nil, howRemovalRefused, howRemovalAccepted), nil
}

// linkedClonesKeepSize expands the disk of a new VM in a VDC with fast provisioning.
func linkedClonesKeepSize(ctx context.Context, b *bench) (outcome, error) {
	if !b.vdc.FastProvisioning {
		return unknown(noFastVDC), nil
	}
	id, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	vm, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if len(vm.Disks) == 0 {
		return unknown(answeredUnknown), b.deleteSpares(ctx)
	}
	err = b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.VMs.ReconfigureVM(ctx, id, vcd.VMChange{DiskMiB: vm.Disks[0].SizeMiB + 1024})
	})
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err != nil, howGrowthRefused, howGrowthAccepted), b.deleteSpares(ctx)
}

// iopsIgnoredWithoutLimits requests IOPS for a disk whose storage profile has no IOPS limits.
func iopsIgnoredWithoutLimits(ctx context.Context, b *bench) (outcome, error) {
	id, err := b.spare(ctx)
	if err != nil {
		return outcome{}, err
	}
	vm, err := b.session.VMs.VM(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	limits, err := b.session.VDCs.IOPSLimits(ctx, vcd.StorageProfile{Ref: vm.StorageProfile})
	if err != nil {
		return outcome{}, err
	}
	if limits.Enabled || len(vm.Disks) == 0 {
		return unknown(noUnlimitedIOPS), b.deleteSpares(ctx)
	}
	err = b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.VMs.ReconfigureVM(ctx, id, vcd.VMChange{DiskIOPS: probedIOPS})
	})
	if err != nil && !refused(err) {
		return outcome{}, err
	}
	return is(err == nil, howIOPSIgnored, howIOPSRefused), b.deleteSpares(ctx)
}

// probedIOPS is a low number of I/O operations per second, which any disk can have.
const probedIOPS = 200

// poolAddressKept reads the address of a NIC before and after its VM is powered off.
func poolAddressKept(ctx context.Context, b *bench) (outcome, error) {
	if err := b.connectNetwork(ctx); err != nil {
		return outcome{}, err
	}
	id, err := b.spare(ctx, b.nic())
	if err != nil {
		return outcome{}, err
	}
	if err := b.powerOn(ctx, id); err != nil {
		return outcome{}, err
	}
	before, err := b.address(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if err := b.powerOff(ctx, id); err != nil {
		return outcome{}, err
	}
	after, err := b.address(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if before == "" {
		return unknown(answeredUnknown), b.restore(ctx)
	}
	return is(before == after, howAddressRead, howAddressRead), b.restore(ctx)
}

// address returns the address of the first NIC of a VM, or the empty string.
func (b *bench) address(ctx context.Context, vm string) (string, error) {
	now, err := b.session.VMs.VM(ctx, vm)
	if err != nil || len(now.NICs) == 0 {
		return "", err
	}
	return now.NICs[0].Address, nil
}

// cancelUndoesCompose cancels the creation of another vApp, and checks whether the vApp exists.
func cancelUndoesCompose(ctx context.Context, b *bench) (outcome, error) {
	if err := b.created.add(kindVApp); err != nil {
		return outcome{}, err
	}
	vm, err := b.newVM("cancelled")
	if err != nil {
		return outcome{}, err
	}
	vApp, started, err := b.session.VApps.ComposeVApp(ctx, b.vdc, vcd.VAppSpec{
		Name:        b.nextName("cancelled"),
		Description: markOf(b.run),
		VMs:         []vcd.VMSpec{vm},
	})
	if err != nil {
		return outcome{}, err
	}
	cancelled := b.session.Tasks.CancelTask(ctx, started.ID)
	if err := b.calls.await(ctx, uuidOf(started.ID)); cancelled != nil || err == nil {
		return unknown(tooQuick), errors.Join(ctx.Err(), b.removeVApp(ctx, vApp))
	}
	_, err = b.session.VApps.VApp(ctx, vApp.ID)
	gone := errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
	if err != nil && !gone {
		return outcome{}, err
	}
	return is(gone, howCancelRead, howCancelRead), b.removeVApp(ctx, vApp)
}

// removeVApp removes a vApp of the run.
func (b *bench) removeVApp(ctx context.Context, v vcd.VApp) error {
	return b.objects().removeOne(ctx, Leftover{
		Run:  b.run,
		Kind: string(kindVApp),
		Name: v.Name,
		kind: kindVApp,
		id:   v.ID,
		path: vAppPath(v.ID),
	})
}
