// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
)

// metadata is the content of guestinfo.metadata, as DataSourceVMware reads it. Fields that cloud-init does not define
// are for templates, such as {{ ds.meta_data.provider_id }}. Region and zone do not have the names that cloud-init uses
// to select mirrors.
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
	IPv4 bool `json:"ipv4,omitempty"`
	IPv6 bool `json:"ipv6,omitempty"`
}

// network is a network configuration of version 2, the format of netplan.
type network struct {
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
}

type ethernet struct {
	Match          match          `json:"match"`
	SetName        string         `json:"set-name,omitempty"`
	DHCP4          bool           `json:"dhcp4"`
	DHCP4Overrides *dhcpOverrides `json:"dhcp4-overrides,omitempty"`
	DHCP6          bool           `json:"dhcp6,omitempty"`
	DHCP6Overrides *dhcpOverrides `json:"dhcp6-overrides,omitempty"`
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

// Metadata returns the values from [Render] without secrets, which [IsFor] reads.
func Metadata(values map[string]string) map[string]string {
	return map[string]string{
		KeyMetadata:         values[KeyMetadata],
		KeyMetadataEncoding: values[KeyMetadataEncoding],
	}
}

// IsFor reports whether extraConfig contains the metadata that [Render] returned for the machine with this instance ID.
// A template that was captured from a VM, or created by other tools, may contain other metadata.
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
			md.WaitOnNetwork = &waitOnNetwork{IPv4: !nic.IPv6Only, IPv6: nic.IPv6Only}
		}
	}
	data, err := json.Marshal(md)
	if err != nil {
		return nil, fmt.Errorf("encoding metadata: %w", err)
	}
	return data, nil
}

// networkFor returns the network configuration, or nil if no NIC needs one. Without this key, cloud-init uses DHCP on
// the first NIC that it finds.
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
	// validateNICs has already validated the address.
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

// withDHCP enables DHCP for IPv4, or for IPv6 if the network has only IPv6. On other networks, the guest accepts router
// advertisements as well, which is the default, but the boot does not wait for an IPv6 address. The client ID for IPv4 is
// the MAC address, because the default, /etc/machine-id, may be the same in all machines of a template. A NIC that is not
// the primary one ignores routes from its DHCP server unless UseRoutes is set, and the boot does not wait for it.
func withDHCP(e ethernet, nic NIC) ethernet {
	e.Optional = !nic.Primary
	if nic.IPv6Only { // DHCPv6 of systemd-networkd sends no host name.
		nic.DHCP.SendHostname = nil
		nic.DHCP.Hostname = ""
	}
	var overrides *dhcpOverrides
	if all := overridesFor(nic); all != (dhcpOverrides{}) {
		overrides = &all
	}
	if nic.IPv6Only {
		e.DHCP6 = true
		e.DHCP6Overrides = overrides
		return e
	}
	e.DHCP4 = true
	e.DHCP4Overrides = overrides
	e.DHCPIdentifier = "mac"
	return e
}

// overridesFor returns the settings for data from the DHCP server of a NIC.
func overridesFor(nic NIC) dhcpOverrides {
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
	return overrides
}

// defaultRoute returns the destination of a default route as a prefix. The package comment explains why it is not
// "default".
func defaultRoute(gateway netip.Addr) netip.Prefix {
	if gateway.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
