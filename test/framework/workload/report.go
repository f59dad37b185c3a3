// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"net/netip"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// readGuest parses the guestinfo of a VM.
func readGuest(vm vcdsim.GuestVM) (guest.Identity, error) {
	var nics []guest.NIC
	for _, nic := range vm.NICs {
		n := guest.NIC{MAC: nic.MAC, Network: nic.Network, Mode: guest.Mode(nic.Mode), Secondary: nic.Secondary}
		if nic.Address.IsValid() && nic.Prefix.IsValid() {
			n.Address = netip.PrefixFrom(nic.Address, nic.Prefix.Bits())
		}
		nics = append(nics, n)
	}
	return guest.Read(vm.ExtraConfig, nics,
		guest.Machine{UUID: vm.UUID, Hostname: vm.Hostname, Customized: vm.Customized})
}

// reportOf returns the report of VMware Tools and cloud-init about a guest. MAC addresses are spelled as in the VM.
func reportOf(vm vcdsim.GuestVM, id guest.Identity) vcdsim.GuestReport {
	addresses := map[string]string{}
	for _, nic := range vm.NICs {
		if prefixes := id.Addresses[strings.ToLower(nic.MAC)]; len(prefixes) > 0 {
			addresses[nic.MAC] = prefixes[0].Addr().String()
		}
	}
	return vcdsim.GuestReport{Addresses: addresses, ExtraConfig: id.Published(), Hostname: id.Hostname}
}
