// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A unit is a file of systemd-networkd or systemd-udevd.
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

// setIf sets a yes or no that is not left to the guest.
func (u *unit) setIf(key string, value *bool) {
	if value != nil {
		u.set(key, yesNo(*value))
	}
}

// match selects the NIC by the address of its hardware: bridges and bonds that take it over keep their own.
func (u *unit) match(nic NIC) {
	// validateNICs has parsed it.
	mac, _ := net.ParseMAC(nic.MAC)
	u.section("Match")
	u.set("PermanentMACAddress", mac)
}

// linkUnit returns the file that gives a NIC its name.
func linkUnit(nic NIC) string {
	var u unit
	u.match(nic)
	u.section("Link")
	u.set("Name", nic.Name)
	return u.text.String()
}

// networkUnit returns the file that configures a NIC as [ethernetFor] does: both have to say the same.
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
	if nic.Mode == ModeDHCP {
		u.dhcp(nic)
	}
	return u.text.String()
}

// link has what concerns the NIC itself. Images ask for an address by DHCP on each NIC that has no file.
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
	if nic.Mode == ModeDHCP {
		u.set("DHCP", "ipv4")
	} else {
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

// dhcp says what is taken from the DHCP server: see [withDHCP].
func (u *unit) dhcp(nic NIC) {
	u.section("DHCPv4")
	u.set("ClientIdentifier", "mac")
	u.setIf("UseDNS", nic.DHCP.UseDNS)
	if nic.DHCP.UseDomains != "" {
		u.set("UseDomains", nic.DHCP.UseDomains)
	}
	u.setIf("UseMTU", nic.DHCP.UseMTU)
	u.setIf("UseNTP", nic.DHCP.UseNTP)
	u.setIf("UseHostname", nic.DHCP.UseHostname)
	u.setIf("SendHostname", nic.DHCP.SendHostname)
	if nic.DHCP.Hostname != "" {
		u.set("Hostname", nic.DHCP.Hostname)
	}
	useRoutes := nic.DHCP.UseRoutes
	if useRoutes == nil && !nic.Primary {
		useRoutes = new(bool)
	}
	u.setIf("UseRoutes", useRoutes)
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
