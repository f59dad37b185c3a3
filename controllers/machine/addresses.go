// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAddresses waits until the addresses of the machine are known. Once the machine is provisioned, it checks
// that the guest still uses these addresses.
func reconcileAddresses(ctx context.Context, s *scope) (phases.Result, error) {
	a := newAddresses(s)
	if s.vm.listed != nil && s.inputs.provisioned() {
		return a.watch(ctx)
	}
	return a.await(ctx)
}

// addresses reports the addresses of the machine's VM in the status.
type addresses struct {
	inputs   *inputs // the status of the VCDMachine is written
	vdc      vcd.VDC
	vm       *vmState
	observer observer
	claims   claims
	schedule *schedule
	now      func() time.Time
}

func newAddresses(s *scope) addresses {
	return addresses{
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		vm:       s.vm,
		observer: newObserver(s),
		claims:   newClaims(s),
		schedule: s.schedule,
		now:      s.now,
	}
}

// await waits until the VM of a machine that is being created has an address.
func (a addresses) await(ctx context.Context) (phases.Result, error) {
	if vm := a.vm.current(); vm == nil || !hasAddress(*vm) {
		a.vm.requireReadNextPass()
		a.vm.cacheHolds = false
		if out, err := a.observer.ensureRead(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	vm := *a.vm.current()
	reportAddresses(a.inputs.vcdMachine, vm)
	if !hasAddress(vm) {
		return phases.Wait(intervals.Task, infrav1.WaitingForAddressReason,
			"Waiting for the guest to get an address by DHCP on network %s", vm.NICs[0].Network), nil
	}
	return a.problem(), nil
}

// watch observes the addresses of a provisioned machine. It reads the VM when the inventory shows a change, and
// otherwise at long intervals.
func (a addresses) watch(ctx context.Context) (phases.Result, error) {
	a.schedule.within(untilNextInventory(a.now(), a.vdc.ID, a.inputs.key()))
	known := a.known()
	if !known || a.observer.readDue() {
		switch err := a.observer.read(ctx); {
		case err == nil:
			reportAddresses(a.inputs.vcdMachine, *a.vm.current())
		case !known:
			return problems.OfRead(err, "Reading VM "+a.vm.listed.Name)
		default:
			ctrl.LoggerFrom(ctx).V(1).Info("Waiting to read the VM", "vmID", a.vm.listed.ID, "reason", err.Error())
		}
	}
	if left := a.vm.nextRead.Sub(a.now()); left > 0 {
		a.schedule.within(left)
	}
	if out := a.problem(); out != phases.Done {
		return out, nil
	}
	return a.claims.lost(ctx)
}

// known reports whether the addresses in the status still match the inventory, which shows only the primary one.
func (a addresses) known() bool {
	if len(a.inputs.vcdMachine.Status.NICs) == 0 {
		return false
	}
	return a.vm.listed.PrimaryAddress == "" || a.vm.listed.PrimaryAddress == a.inputs.vcdMachine.Status.NICs[0].Address
}

// problem returns why the guest cannot be reached at the addresses that it uses.
func (a addresses) problem() phases.Result {
	baseline, ok := a.inputs.baseline()
	if !ok {
		return phases.Done
	}
	found := baseline.Unreachable(a.inputs.vcdMachine.Status.NICs)
	if len(found) == 0 {
		return phases.Done
	}
	reason, message := drift.Summary(found)
	return phases.Fail(inventoryEvery, reason, "%s. Revert the change in VCD, or replace the machine", message)
}

// reportAddresses writes the NICs of a VM, as VCD shows them, to the status. The primary NIC comes first.
func reportAddresses(m *infrav1.VCDMachine, vm vcd.VM) {
	m.Status.Addresses = []clusterv1.MachineAddress{{
		Type:    clusterv1.MachineHostName,
		Address: cmp.Or(m.Spec.RecordedState.VMName, vm.Name),
	}}
	m.Status.NICs = nil
	for _, primary := range []bool{true, false} {
		for _, nic := range vm.NICs {
			if nic.Primary == primary {
				reportNIC(&m.Status, nic)
			}
		}
	}
}

func reportNIC(status *infrav1.VCDMachineStatus, nic vcd.NIC) {
	status.NICs = append(status.NICs,
		infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
	for _, address := range addressesOf(nic) {
		status.Addresses = append(status.Addresses,
			clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
	}
}

// hasAddress reports whether the primary NIC of a VM has an address. It returns true for a VM without NICs.
func hasAddress(vm vcd.VM) bool {
	if len(vm.NICs) == 0 {
		return true
	}
	return slices.ContainsFunc(vm.NICs, func(nic vcd.NIC) bool { return nic.Primary && nic.Address != "" })
}

// primaryAddresses returns the addresses of the primary NIC: at most one per address family.
func primaryAddresses(vm vcd.VM) []string {
	var found []string
	for _, nic := range vm.NICs {
		if nic.Primary {
			found = append(found, addressesOf(nic)...)
		}
	}
	return found
}

// addressesOf returns the addresses of a NIC that are not empty.
func addressesOf(nic vcd.NIC) []string {
	return slices.DeleteFunc([]string{nic.Address, nic.Secondary}, func(address string) bool { return address == "" })
}
