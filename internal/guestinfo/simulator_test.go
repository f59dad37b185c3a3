// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// The simulator's guest is an independent implementation. It must parse the data like cloud-init and Ignition.
func TestSimulatedGuestReadsTheRenderedGuestinfo(t *testing.T) {
	tests := []struct {
		name   string
		mod    func(*guestinfo.Input)
		redact []string
	}{
		{"by cloud-init", func(*guestinfo.Input) {}, []string{"userdata", "vendordata"}},
		{"by Ignition version 3", withIgnition(ignitionConfig), nil},
		{"by Ignition version 2", withIgnition(`{"ignition":{"version":"2.3.0"}}`), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			in := input(tt.mod)
			values, err := guestinfo.Render(in)
			g.Expect(err).NotTo(HaveOccurred())
			nics := make([]guest.NIC, 0, len(in.NICs))
			for _, nic := range in.NICs {
				n := guest.NIC{MAC: nic.MAC, Mode: guest.Mode(nic.Mode)}
				if len(nic.Addresses) > 0 {
					n.Address = nic.Addresses[0]
				}
				nics = append(nics, n)
			}
			nics[2].Address = netip.MustParsePrefix("10.30.0.150/24")

			got, err := guest.Read(values, nics, guest.Machine{})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.InstanceID).To(Equal(in.InstanceID))
			g.Expect(got.Hostname).To(Equal(in.Hostname))
			g.Expect(got.ProviderID).To(Equal(in.ProviderID))
			g.Expect(got.Userdata).NotTo(BeNil())
			g.Expect(got.Address()).To(Equal(in.NICs[0].Addresses[0].Addr()))
			g.Expect(got.Addresses).To(Equal(map[string][]netip.Prefix{
				"00:50:56:ab:cd:01": in.NICs[0].Addresses,
				"00:50:56:ab:cd:02": in.NICs[1].Addresses,
				"00:50:56:ab:cd:03": {nics[2].Address},
			}))
			g.Expect(got.Redact).To(Equal(tt.redact))

			merge(values, got.Published())
			g.Expect(guestinfo.Redacted(values)).To(BeTrue())
			again, err := guest.Read(values, nics, guest.Machine{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Userdata).To(BeNil())
			g.Expect(again.InstanceID).To(Equal(got.InstanceID))
			g.Expect(again.Addresses).To(Equal(got.Addresses))
		})
	}
}

func TestSimulatedGuestUsesTheAddressOfAnIPv6OnlyNetwork(t *testing.T) {
	for name, mod := range map[string]func(*guestinfo.Input){
		"by cloud-init": func(*guestinfo.Input) {},
		"by Ignition":   withIgnition(ignitionConfig),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := input(mod)
			in.NICs = []guestinfo.NIC{{
				MAC:      "00:50:56:ab:cd:01",
				Mode:     guestinfo.ModeDHCP,
				Primary:  true,
				IPv6Only: true,
			}}
			values, err := guestinfo.Render(in)
			g.Expect(err).NotTo(HaveOccurred())
			address := netip.MustParsePrefix("fd00:100::250:56ff:feab:cd01/64")

			got, err := guest.Read(values, []guest.NIC{{MAC: in.NICs[0].MAC, Mode: guest.ModeDHCP, Address: address}}, guest.Machine{})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Address()).To(Equal(address.Addr()))
		})
	}
}
