// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// reader is a guest that reads its guestinfo and boots only if a real guest would.
type reader struct{}

// PowerOn implements vcdsim.Guest.
func (reader) PowerOn(_ context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	nics := make([]guest.NIC, 0, len(vm.NICs))
	for _, n := range vm.NICs {
		nic := guest.NIC{MAC: n.MAC, Network: n.Network, Mode: guest.Mode(n.Mode), Secondary: n.Secondary}
		if n.Address.IsValid() {
			nic.Address = netip.PrefixFrom(n.Address, n.Prefix.Bits())
		}
		nics = append(nics, nic)
	}
	id, err := guest.Read(vm.ExtraConfig, nics,
		guest.Machine{UUID: vm.UUID, Hostname: vm.Hostname, Customized: vm.Customized})
	if err != nil {
		return vcdsim.GuestReport{}, err
	}
	report := vcdsim.GuestReport{Addresses: map[string]string{}, ExtraConfig: id.Published(), Hostname: id.Hostname}
	for mac, prefixes := range id.Addresses {
		if len(prefixes) > 0 {
			report.Addresses[mac] = prefixes[0].Addr().String()
		}
	}
	return report, nil
}

// PowerOff implements vcdsim.Guest.
func (reader) PowerOff(context.Context, string) {}

// Delete implements vcdsim.Guest.
func (reader) Delete(context.Context, string) {}
