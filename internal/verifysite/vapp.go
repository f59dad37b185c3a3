// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const namespaces = `xmlns="http://www.vmware.com/vcloud/v1.5" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"`

// compose ensures that the vApp of the run exists with its two VMs. They have no NICs, and are powered off and
// undeployed between probes.
func (b *bench) compose(ctx context.Context) error {
	if b.vApp != "" {
		return nil
	}
	if err := b.created.add(kindVApp); err != nil {
		return err
	}
	spec := vcd.VAppSpec{Name: nameOf(b.run, "vapp"), Description: markOf(b.run)}
	if b.network.ID != "" {
		spec.Networks = []vcd.Ref{b.network.Ref}
	}
	for range b.vms {
		vm, err := b.newVM("vm")
		if err != nil {
			return err
		}
		spec.VMs = append(spec.VMs, vm)
	}
	vApp, started, err := b.session.VApps.ComposeVApp(ctx, b.vdc, spec)
	if err != nil {
		return err
	}
	if err := b.calls.await(ctx, uuidOf(started.ID)); err != nil {
		return fmt.Errorf("composing the vApp: %w", err)
	}
	details, err := b.session.VApps.Details(ctx, vApp.ID)
	if err != nil {
		return err
	}
	if len(details.Children) != len(b.vms) {
		return errors.New("the vApp does not contain the VMs that it was composed with")
	}
	for i, vm := range details.Children {
		b.vms[i] = vm.ID
	}
	b.vApp = vApp.ID
	return nil
}

// newVM returns the spec of another VM of the run, without NICs.
func (b *bench) newVM(what string) (vcd.VMSpec, error) {
	if err := b.created.add(kindVM); err != nil {
		return vcd.VMSpec{}, err
	}
	return vcd.VMSpec{
		Name:         b.nextName(what),
		Description:  markOf(b.run),
		Template:     b.template,
		ComputerName: "verify-site",
	}, nil
}

// spare adds a VM to the vApp, which a probe may change or delete, and returns its URN.
func (b *bench) spare(ctx context.Context, nics ...vcd.NIC) (string, error) {
	if err := b.compose(ctx); err != nil {
		return "", err
	}
	spec, err := b.newVM("spare")
	if err != nil {
		return "", err
	}
	spec.NICs = nics
	err = b.calls.finish(ctx, func() (vcd.Task, error) { return b.session.VApps.AddVMs(ctx, b.vApp, []vcd.VMSpec{spec}) })
	if err != nil {
		return "", fmt.Errorf("adding a VM: %w", err)
	}
	return b.vmURN(ctx, spec.Name)
}

// vmURN returns the URN of a VM in the vApp by its name.
func (b *bench) vmURN(ctx context.Context, name string) (string, error) {
	details, err := b.session.VApps.Details(ctx, b.vApp)
	if err != nil {
		return "", err
	}
	for _, vm := range details.Children {
		if vm.Name == name {
			return vm.ID, nil
		}
	}
	return "", fmt.Errorf("VM %s is not in the vApp: %w", name, vcd.ErrNotFound)
}

// deleteSpares deletes the VMs that probes added to the vApp.
func (b *bench) deleteSpares(ctx context.Context) error {
	details, err := b.session.VApps.Details(ctx, b.vApp)
	if err != nil {
		return err
	}
	for _, vm := range details.Children {
		if vm.ID == b.vms[0] || vm.ID == b.vms[1] || runOf(vm.Name, vm.Description) != b.run {
			continue
		}
		if err := b.powerOff(ctx, vm.ID); err != nil {
			return err
		}
		if err := b.calls.do(ctx, xmlCall(http.MethodDelete, vmPath(vm.ID), "", "")); ignoreGone(err) != nil {
			return fmt.Errorf("deleting VM %s: %w", vm.Name, err)
		}
	}
	return nil
}

// powerOn powers a VM on.
func (b *bench) powerOn(ctx context.Context, vm string) error {
	return b.calls.finish(ctx, func() (vcd.Task, error) { return b.session.VMs.PowerOn(ctx, vm) })
}

// powerOff powers off and undeploys a VM, if it is deployed.
func (b *bench) powerOff(ctx context.Context, vm string) error {
	now, err := b.session.VMs.VM(ctx, vm)
	if err != nil || !now.Deployed {
		return err
	}
	return b.calls.finish(ctx, func() (vcd.Task, error) { return b.session.VMs.PowerOff(ctx, vm) })
}

// undeploy undeploys the vApp, if it is deployed.
func (b *bench) undeploy(ctx context.Context) error {
	now, err := b.session.VApps.VApp(ctx, b.vApp)
	if err != nil || !now.Deployed {
		return err
	}
	return b.calls.do(ctx, xmlCall(http.MethodPost, vAppPath(b.vApp)+"/action/undeploy", "undeployVAppParams",
		`<UndeployVAppParams `+namespaces+`><UndeployPowerAction>powerOff</UndeployPowerAction></UndeployVAppParams>`))
}

// connectNetwork ensures that the network is connected to the vApp.
func (b *bench) connectNetwork(ctx context.Context) error {
	if err := b.compose(ctx); err != nil {
		return err
	}
	return b.calls.finish(ctx, func() (vcd.Task, error) {
		return b.session.VApps.ConnectNetworks(ctx, b.vApp, []vcd.Ref{b.network.Ref})
	})
}

// rewrite returns a small write to a VM, which sets the description that the VM already has.
func (b *bench) rewrite(vm, name string) vcd.RawCall {
	return xmlCall(http.MethodPost, vmPath(vm)+"/action/reconfigureVm", "vm", fmt.Sprintf(
		`<Vm %s name="%s"><Description>%s</Description></Vm>`, namespaces, escaped(name), escaped(markOf(b.run))))
}

// nic returns a NIC of mode POOL on the network.
func (b *bench) nic() vcd.NIC {
	return vcd.NIC{Network: b.network.Name, Mode: vcd.ModePool, Primary: true}
}
