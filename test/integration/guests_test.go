// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const leasedAddress = "192.168.100.155"

// leases is a vcdsim.Guest whose VMs all report leasedAddress, as if they had a DHCP lease.
type leases struct{}

// PowerOn implements vcdsim.Guest.
func (leases) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	report := vcdsim.GuestReport{Hostname: vm.Name, Addresses: map[string]string{}}
	for _, nic := range vm.NICs {
		report.Addresses[nic.MAC] = leasedAddress
	}
	return report, nil
}

// PowerOff implements vcdsim.Guest.
func (leases) PowerOff(context.Context, string) {}

// Delete implements vcdsim.Guest.
func (leases) Delete(context.Context, string) {}
