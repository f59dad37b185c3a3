package controllers

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAddresses makes sure that the addresses of the machine are known. The VM is read when they are not, and when
// the inventory shows another than was read.
func reconcileAddresses(ctx context.Context, s *machineScope) (outcome, error) {
	if s.addressesKnown() {
		return done, nil
	}
	if s.vm == nil || !s.hasAddress() {
		s.vm = nil
		s.memory.forgetVM()
		if out, err := s.readVM(ctx); err != nil || out != done {
			return out, err
		}
	}
	s.reportNICs()
	if !s.hasAddress() {
		return wait(taskPoll, infrav1.WaitingForAddressReason, "Waiting for the guest to get an address by DHCP on network %s", s.vm.NICs[0].Network), nil
	}
	return done, nil
}

// addressesKnown says whether what was read before still holds.
func (s *machineScope) addressesKnown() bool {
	if s.record == nil || !s.provisioned() || len(s.vcdMachine.Status.NICs) == 0 {
		return false
	}
	return s.record.PrimaryAddress == "" || s.record.PrimaryAddress == s.vcdMachine.Status.NICs[0].Address
}

// hasAddress says whether the primary NIC has one.
func (s *machineScope) hasAddress() bool {
	for _, nic := range s.vm.NICs {
		if nic.Primary {
			return nic.Address != ""
		}
	}
	return len(s.vm.NICs) == 0
}

// reportNICs writes what VCD says of the NICs to the status, the primary one first.
func (s *machineScope) reportNICs() {
	status := &s.vcdMachine.Status
	status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: s.vm.Name}}
	status.NICs = nil
	for _, primary := range []bool{true, false} {
		for _, nic := range s.vm.NICs {
			if nic.Primary == primary {
				s.reportNIC(nic)
			}
		}
	}
}

func (s *machineScope) reportNIC(nic vcd.NIC) {
	status := &s.vcdMachine.Status
	status.NICs = append(status.NICs, infrav1.NICStatus{Network: nic.Network, MACAddress: nic.MAC, Address: nic.Address})
	if nic.Address != "" {
		status.Addresses = append(status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: nic.Address})
	}
}
