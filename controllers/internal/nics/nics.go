// SPDX-License-Identifier: Apache-2.0

// Package nics computes the NICs of a machine, as VCD and as its guest see them.
package nics

import (
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A NIC is a NIC of a machine.
type NIC struct {
	Index   int
	Spec    infrav1.NetworkSpec
	Network vcd.Network
	// DualStack is set in a dual-stack cluster. A NIC with source StaticPool then gets an address of each family for
	// which its network has a static pool.
	DualStack bool
	Static    []Static // addresses from Manual and IPAM sources, at most one of each family, in the order of the spec
}

// VCD returns the NIC to request from VCD. If the NIC has addresses of both families, the IPv4 address is its first
// one.
func (n NIC) VCD() vcd.NIC {
	nic := vcd.NIC{
		Index:   n.Index,
		Network: n.Network.Name,
		Mode:    modeOf(n.Spec),
		Primary: n.Index == 0,
		Adapter: string(n.Spec.Adapter),
	}
	if nic.Adapter == "" {
		nic.Adapter = string(infrav1.AdapterVMXNET3)
	}
	if nic.Mode == vcd.ModePool && n.DualStack && n.hasPool(netip.Addr.Is4) && n.hasPool(netip.Addr.Is6) {
		nic.SecondaryMode = vcd.ModePool
	}
	for _, static := range n.Static {
		switch {
		case nic.Address == "":
			nic.Address = static.Addr.String()
		case static.Addr.Is4():
			nic.Address, nic.Secondary = static.Addr.String(), nic.Address
		default:
			nic.Secondary = static.Addr.String()
		}
	}
	return nic
}

// hasPool reports whether the network has a static pool of a family.
func (n NIC) hasPool(family func(netip.Addr) bool) bool {
	return slices.ContainsFunc(n.Network.Subnets, func(s vcd.Subnet) bool {
		return len(s.StaticPool) > 0 && family(s.Prefix.Addr())
	})
}

// DualStack reports whether the pods or the Services of a cluster have addresses of both families.
func DualStack(c *clusterv1.Cluster) bool {
	return hasBothFamilies(c.Spec.ClusterNetwork.Pods.CIDRBlocks) || hasBothFamilies(c.Spec.ClusterNetwork.Services.CIDRBlocks)
}

func hasBothFamilies(blocks []string) bool {
	var v4, v6 bool
	for _, block := range blocks {
		if prefix, err := netip.ParsePrefix(block); err == nil {
			v4 = v4 || prefix.Addr().Is4()
			v6 = v6 || prefix.Addr().Is6()
		}
	}
	return v4 && v6
}

func modeOf(nic infrav1.NetworkSpec) vcd.AddressMode {
	switch nic.AddressSource {
	case infrav1.AddressDHCP:
		return vcd.ModeDHCP
	case infrav1.AddressManual, infrav1.AddressIPAM:
		return vcd.ModeManual
	case infrav1.AddressStaticPool:
	}
	return vcd.ModePool
}

// Guest returns the NIC as the guest must configure it, given the NIC that VCD shows.
func (n NIC) Guest(is vcd.NIC) (guestinfo.NIC, phases.Result) {
	guest := guestinfo.NIC{
		MAC:           is.MAC,
		Mode:          guestinfo.Mode(is.Mode),
		MTU:           int(n.Spec.MTU),
		Primary:       is.Primary,
		DNS:           addresses(n.Spec.Nameservers),
		SearchDomains: n.Spec.SearchDomains,
		Metric:        int(n.Spec.GatewayMetric),
		DHCP:          n.dhcp(),
		IPv6Only:      is.Mode == vcd.ModeDHCP && n.Network.IsIPv6Only(),
	}
	for _, r := range n.Spec.Routes {
		to, _ := netip.ParsePrefix(r.To) // guestinfo rejects invalid values that no webhook rejected
		via, _ := netip.ParseAddr(r.Via)
		guest.Routes = append(guest.Routes, guestinfo.Route{To: to.Masked(), Via: via, Metric: int(r.Metric)})
	}
	statics, out := n.statics(is)
	if out != phases.Done {
		return guest, out
	}
	for _, static := range statics {
		if static.Addr.String() != is.Address && static.Addr.String() != is.Secondary {
			return guest, phases.Fail(intervals.Remedy, infrav1.AddressInvalidReason,
				"NIC %d was created with address %s, but %s now assigns %s: delete the Machine to replace it",
				n.Index, is.Address, static.From,
				static.Addr)
		}
		if out := n.configure(&guest, static); out != phases.Done {
			return guest, out
		}
	}
	return guest, phases.Done
}

// statics returns the addresses that do not come from DHCP: the static ones of the spec, or those that VCD assigned.
func (n NIC) statics(is vcd.NIC) ([]Static, phases.Result) {
	if is.Mode != vcd.ModePool && (is.Mode != vcd.ModeManual || len(n.Static) > 0) {
		return n.Static, phases.Done
	}
	addr, err := netip.ParseAddr(is.Address)
	if err != nil {
		return nil, phases.Wait(intervals.Task, infrav1.WaitingForAddressReason,
			"Waiting for VCD to assign an address of network %s", n.Network.Name)
	}
	statics := []Static{assigned(addr)}
	if second, err := netip.ParseAddr(is.Secondary); err == nil {
		statics = append(statics, assigned(second))
	}
	return statics, phases.Done
}

func assigned(addr netip.Addr) Static {
	return Static{Addr: addr, From: "VCD", Remedy: "correct spec.networks, or the network"}
}

// configure adds an address to the NIC of the guest, with the settings of its pool and its network.
func (n NIC) configure(guest *guestinfo.NIC, static Static) phases.Result {
	subnet, out := n.subnet(static)
	if out != phases.Done {
		return out
	}
	guest.Addresses = append(guest.Addresses, netip.PrefixFrom(static.Addr, subnet.Prefix.Bits()))
	gateway := subnet.Gateway
	if static.Gateway.IsValid() {
		gateway = static.Gateway
	}
	if gateway.IsValid() {
		guest.Gateways = append(guest.Gateways, gateway)
	}
	if len(n.Spec.Nameservers) == 0 {
		for _, server := range subnet.DNS {
			if !slices.Contains(guest.DNS, server) {
				guest.DNS = append(guest.DNS, server)
			}
		}
	}
	if len(guest.SearchDomains) == 0 && subnet.DNSSuffix != "" {
		guest.SearchDomains = []string{subnet.DNSSuffix}
	}
	return phases.Done
}

// useDomains maps uses of domains to the values of netplan.
var useDomains = map[infrav1.UseDomains]string{
	infrav1.UseDomainsUse:       "true",
	infrav1.UseDomainsIgnore:    "false",
	infrav1.UseDomainsRouteOnly: "route",
}

// dhcp returns the settings that the guest accepts from DHCP. A metric of the gateway implies the use of DHCP's routes.
func (n NIC) dhcp() guestinfo.DHCP {
	taken := guestinfo.DHCP{Metric: int(n.Spec.GatewayMetric)}
	if n.Spec.GatewayMetric > 0 {
		yes := true
		taken.UseRoutes = &yes
	}
	if o := n.Spec.DHCPOverrides; o != nil {
		taken.UseDNS = o.UseDNS
		taken.UseMTU = o.UseMTU
		taken.UseNTP = o.UseNTP
		taken.UseHostname = o.UseHostname
		taken.SendHostname = o.SendHostname
		taken.Hostname = o.Hostname
		taken.UseDomains = useDomains[o.UseDomains]
		if o.UseRoutes != nil {
			taken.UseRoutes = o.UseRoutes
		}
	}
	return taken
}

// addresses parses addresses. It skips invalid ones, which the webhook rejects.
func addresses(texts []string) []netip.Addr {
	var result []netip.Addr
	for _, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil {
			result = append(result, addr)
		}
	}
	return result
}
