// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
)

// metadata is guestinfo.metadata as DataSourceVMware reads it. What is not cloud-init's own is for templates:
// {{ ds.meta_data.provider_id }}. The names of region and zone are not those from which cloud-init chooses mirrors.
type metadata struct {
	InstanceID    string         `json:"instance-id"`
	LocalHostname string         `json:"local-hostname"`
	Hostname      string         `json:"hostname"`
	ProviderID    string         `json:"provider_id"`
	Region        string         `json:"topology_region,omitempty"`
	Zone          string         `json:"topology_zone,omitempty"`
	Redact        []string       `json:"redact"`
	WaitOnNetwork *waitOnNetwork `json:"wait-on-network,omitempty"`
	Network       *network       `json:"network,omitempty"`
}

type waitOnNetwork struct {
	IPv4 bool `json:"ipv4"`
}

// network is a network configuration of version 2, which is netplan's.
type network struct {
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
}

type ethernet struct {
	Match          match          `json:"match"`
	SetName        string         `json:"set-name,omitempty"`
	DHCP4          bool           `json:"dhcp4"`
	DHCP4Overrides *dhcpOverrides `json:"dhcp4-overrides,omitempty"`
	DHCPIdentifier string         `json:"dhcp-identifier,omitempty"`
	Optional       bool           `json:"optional,omitempty"`
	Addresses      []netip.Prefix `json:"addresses,omitempty"`
	Routes         []route        `json:"routes,omitempty"`
	Nameservers    *nameservers   `json:"nameservers,omitempty"`
	MTU            int            `json:"mtu,omitempty"`
}

type match struct {
	MACAddress string `json:"macaddress"`
}

type dhcpOverrides struct {
	UseDNS     *bool `json:"use-dns,omitempty"`
	UseDomains any   `json:"use-domains,omitempty"`
	UseMTU     *bool `json:"use-mtu,omitempty"`
	UseNTP     *bool `json:"use-ntp,omitempty"`
	UseRoutes  *bool `json:"use-routes,omitempty"`
	Metric     int   `json:"route-metric,omitempty"`

	UseHostname  *bool  `json:"use-hostname,omitempty"`
	SendHostname *bool  `json:"send-hostname,omitempty"`
	Hostname     string `json:"hostname,omitempty"`
}

type route struct {
	To     netip.Prefix `json:"to"`
	Via    netip.Addr   `json:"via"`
	Metric int          `json:"metric,omitempty"`
}

type nameservers struct {
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Search    []string     `json:"search,omitempty"`
}

// Metadata returns those of values from [Render] that hold no secret: they are what [IsFor] reads.
func Metadata(values map[string]string) map[string]string {
	return map[string]string{
		KeyMetadata:         values[KeyMetadata],
		KeyMetadataEncoding: values[KeyMetadataEncoding],
	}
}

// IsFor reports whether extraConfig has the metadata that [Render] made for the machine with an instance ID. A template
// that was captured from a VM, or made by other tools, may have metadata of its own.
func IsFor(extraConfig map[string]string, instanceID string) bool {
	data, err := decode(extraConfig[KeyMetadata], extraConfig[KeyMetadataEncoding])
	if err != nil {
		return false
	}
	var found metadata
	return json.Unmarshal(data, &found) == nil && found.InstanceID == instanceID
}

func renderMetadata(in Input) ([]byte, error) {
	md := metadata{
		InstanceID:    in.InstanceID,
		LocalHostname: in.Hostname,
		Hostname:      in.Hostname,
		ProviderID:    in.ProviderID,
		Region:        in.Region,
		Zone:          in.Zone,
		Redact:        []string{"userdata", "vendordata"},
		Network:       networkFor(in.NICs),
	}
	for _, nic := range in.NICs {
		if nic.Primary && nic.Mode == ModeDHCP {
			md.WaitOnNetwork = &waitOnNetwork{IPv4: true}
		}
	}
	data, err := json.Marshal(md)
	if err != nil {
		return nil, fmt.Errorf("encoding metadata: %w", err)
	}
	return data, nil
}

// networkFor returns nil if no NIC needs a configuration: without the key, cloud-init asks for an address by DHCP
// on the first NIC it sees.
func networkFor(nics []NIC) *network {
	ethernets := map[string]ethernet{}
	for i, nic := range nics {
		if nic.Mode != ModeNone {
			ethernets[fmt.Sprintf("id%d", i)] = ethernetFor(nic)
		}
	}
	if len(ethernets) == 0 {
		return nil
	}
	return &network{Version: 2, Ethernets: ethernets}
}

func ethernetFor(nic NIC) ethernet {
	// validateNICs has parsed it.
	mac, _ := net.ParseMAC(nic.MAC)
	e := ethernet{Match: match{MACAddress: mac.String()}, SetName: nic.Name, MTU: nic.MTU}
	if len(nic.DNS) > 0 || len(nic.SearchDomains) > 0 {
		e.Nameservers = &nameservers{Addresses: nic.DNS, Search: nic.SearchDomains}
	}
	if nic.Mode == ModeDHCP {
		e = withDHCP(e, nic)
	} else {
		e.Addresses = nic.Addresses
	}
	if nic.Primary || nic.Metric > 0 {
		for _, gateway := range nic.Gateways {
			e.Routes = append(e.Routes, route{To: defaultRoute(gateway), Via: gateway, Metric: nic.Metric})
		}
	}
	for _, r := range nic.Routes {
		e.Routes = append(e.Routes, route(r))
	}
	return e
}

// withDHCP asks for an IPv4 lease, not for an IPv6 address. The lease goes by MAC address, because machines of
// one template may share what it is otherwise made of, /etc/machine-id. Routes from the server of a further
// network are ignored unless they are asked for, and boot does not wait for it.
func withDHCP(e ethernet, nic NIC) ethernet {
	e.DHCP4 = true
	e.DHCPIdentifier = "mac"
	e.Optional = !nic.Primary
	overrides := dhcpOverrides{
		UseDNS:       nic.DHCP.UseDNS,
		UseMTU:       nic.DHCP.UseMTU,
		UseNTP:       nic.DHCP.UseNTP,
		UseRoutes:    nic.DHCP.UseRoutes,
		Metric:       nic.DHCP.Metric,
		UseHostname:  nic.DHCP.UseHostname,
		SendHostname: nic.DHCP.SendHostname,
		Hostname:     nic.DHCP.Hostname,
	}
	switch nic.DHCP.UseDomains {
	case "":
	case "route":
		overrides.UseDomains = "route"
	default:
		overrides.UseDomains = nic.DHCP.UseDomains == "true"
	}
	if overrides.UseRoutes == nil && !nic.Primary {
		overrides.UseRoutes = new(bool)
	}
	if overrides != (dhcpOverrides{}) {
		e.DHCP4Overrides = &overrides
	}
	return e
}

// defaultRoute writes the destination out: see the package comment on "default".
func defaultRoute(gateway netip.Addr) netip.Prefix {
	if gateway.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
