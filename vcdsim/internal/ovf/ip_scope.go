// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"net"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Netmask returns the netmask of a prefix.
func Netmask(p netip.Prefix) string {
	return net.IP(net.CIDRMask(p.Bits(), p.Addr().BitLen())).String()
}

// IPScope returns the IpScopes element with a subnet.
func IPScope(gateway netip.Prefix, dns []netip.Addr, suffix string, pool []store.Range, inherited bool) *xmltree.Node {
	s := xmltree.New("IpScope", xmltree.T("IsInherited", inherited), xmltree.T("Gateway", gateway.Addr()),
		xmltree.T("Netmask", Netmask(gateway)), xmltree.T("SubnetPrefixLength", gateway.Bits()))
	for i, name := range []string{"Dns1", "Dns2"} {
		if len(dns) > i {
			s.Add(xmltree.T(name, dns[i]))
		}
	}
	s.Add([]*xmltree.Node{xmltree.OptT("DnsSuffix", suffix), xmltree.T("IsEnabled", true)})
	if len(pool) > 0 {
		ranges := xmltree.New("IpRanges")
		for _, p := range pool {
			ranges.Add(xmltree.New("IpRange", xmltree.T("StartAddress", p.From), xmltree.T("EndAddress", p.To)))
		}
		s.Add(ranges)
	}
	return xmltree.New("IpScopes", s)
}
