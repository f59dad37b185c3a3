package machine

import (
	"cmp"
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAddresses makes sure that the addresses of the machine are known, and later that they are those its guest
// uses.
func reconcileAddresses(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.vm.row != nil && s.provisioned() {
		return s.addresses.watch(ctx)
	}
	if s.vm.now() == nil || !s.addresses.hasAddress() {
		s.vm.forget()
		s.vm.current = false
		if out, err := s.observer.ensureRead(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	s.addresses.report()
	if !s.addresses.hasAddress() {
		return phases.Wait(session.TaskPoll, infrav1.WaitingForAddressReason,
			"Waiting for the guest to get an address by DHCP on network %s", s.vm.now().NICs[0].Network), nil
	}
	return s.addresses.problem(), nil
}

// Addresses reports the addresses of a VM.
type addresses struct{ *scope }

// watch observes the addresses of a machine that runs. Its VM is read when the inventory shows that something
// changed, and now and then.
func (s addresses) watch(ctx context.Context) (phases.Outcome, error) {
	s.requeueWithin(untilNextInventory(s.now(), s.placement.vdc.ID, s.key()))
	known := s.known()
	if !known || s.observer.readDue() {
		switch err := s.observer.read(ctx); {
		case err == nil:
			s.report()
		case !known:
			return session.Unread(err, "Reading VM "+s.vm.row.Name)
		default:
			ctrl.LoggerFrom(ctx).V(1).Info("Reading the VM later", "vm", s.vm.row.ID, "reason", err.Error())
		}
	}
	if left := s.vm.readNext.Sub(s.now()); left > 0 {
		s.requeueWithin(left)
	}
	return s.problem(), nil
}

// problem returns why the guest cannot be reached under the addresses that it uses.
func (s addresses) problem() phases.Outcome {
	made, ok := s.made()
	if !ok {
		return phases.Done
	}
	found := made.Unreachable(s.vcdMachine.Status.NICs)
	if len(found) == 0 {
		return phases.Done
	}
	reason, message := drift.Summary(found)
	return phases.Fail(inventoryEvery, reason, "%s. Set it back in VCD, or replace the machine", message)
}

// known reports whether what was read earlier still holds.
func (s addresses) known() bool {
	if len(s.vcdMachine.Status.NICs) == 0 {
		return false
	}
	return s.vm.row.PrimaryAddress == "" || s.vm.row.PrimaryAddress == s.vcdMachine.Status.NICs[0].Address
}

// hasAddress reports whether the primary NIC has one.
func (s addresses) hasAddress() bool { return s.primary() != "" || len(s.vm.now().NICs) == 0 }

// primary returns the address of the primary NIC; empty if it has none.
func (s addresses) primary() string {
	for _, nic := range s.vm.now().NICs {
		if nic.Primary {
			return nic.Address
		}
	}
	return ""
}

// report writes what VCD says of the NICs to the status, the primary one first.
func (s addresses) report() {
	status := &s.vcdMachine.Status
	status.Addresses = []clusterv1.MachineAddress{{
		Type:    clusterv1.MachineHostName,
		Address: cmp.Or(s.vcdMachine.Annotations[infrav1.VMNameAnnotation], s.vm.now().Name),
	}}
	status.NICs = nil
	for _, primary := range []bool{true, false} {
		for _, nic := range s.vm.now().NICs {
			if nic.Primary == primary {
				s.reportNIC(nic)
			}
		}
	}
}

func (s addresses) reportNIC(nic vcd.NIC) {
	status := &s.vcdMachine.Status
	status.NICs = append(status.NICs,
		infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
	if nic.Address != "" {
		status.Addresses = append(status.Addresses,
			clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: nic.Address})
	}
}
