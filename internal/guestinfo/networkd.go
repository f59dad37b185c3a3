// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A unit is a configuration file of systemd-networkd or systemd-udevd.
type unit struct{ text strings.Builder }

func (u *unit) section(name string) {
	if u.text.Len() > 0 {
		u.text.WriteByte('\n')
	}
	fmt.Fprintf(&u.text, "[%s]\n", name)
}

func (u *unit) set(key string, value any) {
	fmt.Fprintf(&u.text, "%s=%v\n", key, value)
}

// setIf sets a boolean. If the value is nil, the guest's default applies.
func (u *unit) setIf(key string, value *bool) {
	if value != nil {
		u.set(key, yesNo(*value))
	}
}

// match matches the NIC by its permanent MAC address, so that the unit does not match bridges and bonds that take over
// the address.
func (u *unit) match(nic NIC) {
	// validateNICs has already validated the address.
	mac, _ := net.ParseMAC(nic.MAC)
	u.section("Match")
	u.set("PermanentMACAddress", mac)
}

// linkUnit returns the file that sets the name of a NIC.
func linkUnit(nic NIC) string {
	var u unit
	u.match(nic)
	u.section("Link")
	u.set("Name", nic.Name)
	return u.text.String()
}

// networkUnit returns the file that configures a NIC. It must configure the NIC in the same way as [ethernetFor].
func networkUnit(nic NIC) string {
	var u unit
	u.match(nic)
	u.link(nic)
	if nic.Mode == ModeNone {
		return u.text.String()
	}
	u.network(nic)
	if nic.Primary || nic.Metric > 0 {
		for _, gateway := range nic.Gateways {
			u.route(defaultRoute(gateway), gateway, nic.Metric)
		}
	}
	for _, r := range nic.Routes {
		u.route(r.To, r.Via, r.Metric)
	}
	switch {
	case nic.Mode == ModeDHCP && nic.IPv6Only:
		u.dhcpv6(nic)
	case nic.Mode == ModeDHCP:
		u.dhcp(nic)
	}
	return u.text.String()
}

// link adds the settings of the NIC itself. A NIC without an address needs a file too, because images use DHCP on each
// NIC that has none.
func (u *unit) link(nic NIC) {
	isOptional := nic.Mode == ModeDHCP && !nic.Primary
	if nic.Mode != ModeNone && nic.MTU == 0 && !isOptional {
		return
	}
	u.section("Link")
	if nic.Mode == ModeNone {
		u.set("Unmanaged", yesNo(true))
	}
	if nic.MTU != 0 {
		u.set("MTUBytes", nic.MTU)
	}
	if isOptional {
		u.set("RequiredForOnline", yesNo(false))
	}
}

func (u *unit) network(nic NIC) {
	u.section("Network")
	switch {
	case nic.Mode == ModeDHCP && nic.IPv6Only:
		u.set("DHCP", "ipv6")
	case nic.Mode == ModeDHCP:
		u.set("DHCP", "ipv4")
	default:
		for _, address := range nic.Addresses {
			u.set("Address", address)
		}
	}
	for _, server := range nic.DNS {
		u.set("DNS", server)
	}
	if len(nic.SearchDomains) > 0 {
		u.set("Domains", strings.Join(nic.SearchDomains, " "))
	}
}

func (u *unit) route(to netip.Prefix, via netip.Addr, metric int) {
	u.section("Route")
	u.set("Destination", to)
	u.set("Gateway", via)
	if metric > 0 {
		u.set("Metric", metric)
	}
}

// dhcp adds the settings for DHCP, with the same defaults as [withDHCP].
func (u *unit) dhcp(nic NIC) {
	u.section("DHCPv4")
	u.set("ClientIdentifier", "mac")
	u.names(nic)
	u.setIf("UseMTU", nic.DHCP.UseMTU)
	u.setIf("UseNTP", nic.DHCP.UseNTP)
	u.setIf("UseHostname", nic.DHCP.UseHostname)
	u.setIf("SendHostname", nic.DHCP.SendHostname)
	if nic.DHCP.Hostname != "" {
		u.set("Hostname", nic.DHCP.Hostname)
	}
	u.routes("UseRoutes", nic)
}

// dhcpv6 adds the settings for router advertisements and for DHCPv6. Routes come only from advertisements, and no host
// name is sent.
func (u *unit) dhcpv6(nic NIC) {
	u.section("IPv6AcceptRA")
	u.names(nic)
	u.setIf("UseMTU", nic.DHCP.UseMTU)
	u.routes("UseGateway", nic)
	u.section("DHCPv6")
	u.names(nic)
	u.setIf("UseNTP", nic.DHCP.UseNTP)
	u.setIf("UseHostname", nic.DHCP.UseHostname)
}

// names adds the settings for DNS servers and domains.
func (u *unit) names(nic NIC) {
	u.setIf("UseDNS", nic.DHCP.UseDNS)
	if nic.DHCP.UseDomains != "" {
		u.set("UseDomains", nic.DHCP.UseDomains)
	}
}

// routes adds the settings for routes. key is the setting that enables them.
func (u *unit) routes(key string, nic NIC) {
	useRoutes := nic.DHCP.UseRoutes
	if useRoutes == nil && !nic.Primary {
		useRoutes = new(bool)
	}
	u.setIf(key, useRoutes)
	if nic.DHCP.Metric > 0 {
		u.set("RouteMetric", strconv.Itoa(nic.DHCP.Metric))
	}
}

func yesNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
