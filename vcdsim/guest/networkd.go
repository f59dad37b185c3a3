// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

const networkdFolder = "/etc/systemd/network/"

// networkdKeys are the settings of systemd-networkd that this guest applies or may ignore. systemd-networkd logs a
// warning for unknown settings and ignores them.
var networkdKeys = map[string][]string{
	"Match":        {"MACAddress", "PermanentMACAddress", "Name", "Type", "Driver", "Kind"},
	"Link":         {"MTUBytes", "RequiredForOnline", "Unmanaged"},
	"Network":      {"Address", "Gateway", "DHCP", "DNS", "Domains", "Description", "LinkLocalAddressing", "IPv6AcceptRA"},
	"Address":      {"Address"},
	"Route":        {"Destination", "Gateway", "GatewayOnLink", "Metric"},
	"DHCPv6":       {"UseDNS", "UseDomains", "UseNTP", "UseHostname"},
	"IPv6AcceptRA": {"UseDNS", "UseDomains", "UseMTU", "UseGateway", "RouteMetric"},
	"DHCPv4": {
		"ClientIdentifier",
		"UseDNS",
		"UseDomains",
		"UseMTU",
		"UseNTP",
		"UseRoutes",
		"RouteMetric",
		"UseHostname",
		"SendHostname",
		"Hostname",
	},
}

// networkdSection is a section of a unit. A unit may have several sections of one name, and a section several values
// of one key.
type networkdSection struct {
	name   string
	values map[string][]string
}

type networkdUnit []networkdSection

// networkdNetwork configures each card with the first matching file, in the order of file names. A card without a
// file uses DHCP: Flatcar's images have a last file that enables it.
func networkdNetwork(u *Userdata, nics []NIC) (network, error) {
	net := network{addresses: map[string][]netip.Prefix{}}
	files := slices.Clone(u.Files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	units := map[string]networkdUnit{}
	for _, f := range files {
		if path.Dir(f.Path)+"/" != networkdFolder || path.Ext(f.Path) != ".network" {
			continue
		}
		unit, err := parseNetworkd(f.Content)
		if err != nil {
			return network{}, fmt.Errorf("%s: %w", f.Path, err)
		}
		units[f.Path] = unit
	}
	for _, nic := range nics {
		isFirst := func(f File) bool { return units[f.Path] != nil && units[f.Path].matches(nic) }
		i := slices.IndexFunc(files, isFirst)
		if i < 0 {
			if err := net.useDHCP(nic); err != nil {
				return network{}, err
			}
			continue
		}
		if err := net.applyUnit(units[files[i].Path], nic); err != nil {
			return network{}, fmt.Errorf("%s: %w", files[i].Path, err)
		}
	}
	return net, net.checkComplete(nics)
}

func parseNetworkd(text string) (networkdUnit, error) {
	var unit networkdUnit
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, isSection := strings.CutPrefix(line, "[")
		key, value, isSetting := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case isSection:
			name = strings.TrimSuffix(name, "]")
			if networkdKeys[name] == nil {
				return nil, fmt.Errorf("section %s is not supported by the simulated guest", name)
			}
			unit = append(unit, networkdSection{name: name, values: map[string][]string{}})
		case len(unit) == 0 || !isSetting:
			return nil, fmt.Errorf("%q is not a setting in a section", line)
		default:
			section := unit[len(unit)-1]
			if !slices.Contains(networkdKeys[section.name], key) {
				return nil, fmt.Errorf("unknown setting %s in section %s: systemd-networkd would ignore it", key, section.name)
			}
			section.values[key] = append(section.values[key], strings.TrimSpace(value))
		}
	}
	return unit, nil
}

// all returns the values of a key in all sections of a name.
func (u networkdUnit) all(section, key string) []string {
	var values []string
	for _, s := range u {
		if s.name == section {
			values = append(values, s.values[key]...)
		}
	}
	return values
}

// is reports whether the last value of a key is one of words.
func (u networkdUnit) is(section, key string, words ...string) bool {
	values := u.all(section, key)
	return len(values) > 0 && slices.Contains(words, values[len(values)-1])
}

// matches reports whether a unit applies to a card: every key of its Match section must match. The kernel name of a
// card is unknown here.
func (u networkdUnit) matches(nic NIC) bool {
	for _, key := range []string{"MACAddress", "PermanentMACAddress"} {
		wanted := u.all("Match", key)
		is := func(mac string) bool { return strings.EqualFold(mac, nic.MAC) }
		if len(wanted) > 0 && !slices.ContainsFunc(strings.Fields(strings.Join(wanted, " ")), is) {
			return false
		}
	}
	names := strings.Fields(strings.Join(u.all("Match", "Name"), " "))
	isName := func(pattern string) bool {
		ens, errENS := path.Match(pattern, "ens192")
		eth, errETH := path.Match(pattern, "eth0")
		return errENS == nil && ens || errETH == nil && eth
	}
	return len(names) == 0 || slices.ContainsFunc(names, isName)
}

// useDHCP configures a card that has no file. On a network without a DHCP server the card has no address.
func (n *network) useDHCP(nic NIC) error {
	if nic.Mode == ModeNone {
		return nil
	}
	if err := n.lease(nic, false); err != nil {
		return fmt.Errorf("no file in %s matches the card: %w", networkdFolder, err)
	}
	n.makePrimary(nic)
	return nil
}

func (n *network) makePrimary(nic NIC) {
	if n.primary == "" {
		n.primary = macKey(nic.MAC)
	}
}

// applyUnit configures a card with a unit.
func (n *network) applyUnit(u networkdUnit, nic NIC) error {
	if u.is("Link", "Unmanaged", "yes", "true") {
		return nil
	}
	mac := macKey(nic.MAC)
	for _, text := range append(u.all("Network", "Address"), u.all("Address", "Address")...) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("address %q is not an address with a prefix length", text)
		}
		n.addresses[mac] = append(n.addresses[mac], prefix)
	}
	for _, text := range strings.Fields(strings.Join(u.all("Network", "DNS"), " ")) {
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("DNS server %q is not an address", text)
		}
	}
	isDefault, err := u.checkRoutes(n.addresses[mac])
	if err != nil {
		return err
	}
	if u.is("Network", "DHCP", "yes", "true", "ipv4", "ipv6") && nic.Mode != ModeNone {
		if err := n.lease(nic, len(n.addresses[mac]) > 0); err != nil {
			return err
		}
		isDefault = isDefault || !u.is("DHCPv4", "UseRoutes", "no", "false") && !u.is("IPv6AcceptRA", "UseGateway", "no", "false")
	}
	if isDefault {
		n.makePrimary(nic)
	}
	return n.checkAssigned(nic)
}

// checkRoutes validates gateways and routes, and reports whether one is a default route.
func (u networkdUnit) checkRoutes(addresses []netip.Prefix) (isDefault bool, _ error) {
	for _, gateway := range u.all("Network", "Gateway") {
		if err := checkGateway(gateway, addresses, false); err != nil {
			return false, err
		}
		isDefault = true
	}
	for _, s := range u {
		if s.name != "Route" {
			continue
		}
		gateways := s.values["Gateway"]
		if len(gateways) != 1 {
			return false, errors.New("a section Route needs one Gateway")
		}
		if err := checkGateway(gateways[0], addresses, slices.Contains(s.values["GatewayOnLink"], "yes")); err != nil {
			return false, err
		}
		isDefaultRoute, err := isDefaultRoute(s.values["Destination"])
		if err != nil {
			return false, err
		}
		isDefault = isDefault || isDefaultRoute
	}
	return isDefault, nil
}

// isDefaultRoute reports whether a route with these destinations, possibly none, is a default route.
func isDefaultRoute(destinations []string) (bool, error) {
	for _, text := range destinations {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return false, fmt.Errorf("destination %q is not a subnet", text)
		}
		if prefix.Bits() > 0 {
			return false, nil
		}
	}
	return true, nil
}
