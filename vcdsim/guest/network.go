// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// network is the resulting configuration of the guest's interfaces.
type network struct {
	addresses map[string][]netip.Prefix
	primary   string
}

// ethernetKeys are the settings that netplan supports for an ethernet. netplan rejects a file with any other setting.
var ethernetKeys = []string{
	"accept-ra", "addresses", "critical", "dhcp-identifier", "dhcp4", "dhcp4-overrides", "dhcp6", "dhcp6-overrides",
	"gateway4", "gateway6",
	"ignore-carrier", "ipv6-address-generation", "ipv6-address-token", "ipv6-mtu", "ipv6-privacy", "link-local",
	"macaddress", "match", "mtu",
	"nameservers", "optional", "optional-addresses", "renderer", "routes", "routing-policy", "set-name", "wakeonlan",
}

// overrideKeys are the settings of netplan for data from a DHCP server.
var overrideKeys = []string{
	"hostname", "route-metric", "send-hostname", "use-dns", "use-domains", "use-hostname", "use-mtu", "use-ntp", "use-routes",
}

// interfaces applies the metadata's network configuration to the cards of the VM.
func (m metadata) interfaces(nics []NIC, from Machine) (network, error) {
	if m.network == nil {
		return defaultNetwork(nics, from)
	}
	if inner, ok := m.network["network"].(map[string]any); ok {
		m.network = inner
	}
	if v := scalar(m.network["version"]); v != "2" {
		return network{}, fmt.Errorf("version is %q, want 2", v)
	}
	ethernets, ok := m.network["ethernets"].(map[string]any)
	if !ok || len(ethernets) == 0 {
		return network{}, errors.New("no ethernets")
	}
	for key := range m.network {
		if !slices.Contains([]string{"version", "ethernets", "renderer"}, key) {
			return network{}, fmt.Errorf("%s is not supported by the simulated guest", key)
		}
	}
	net := network{addresses: map[string][]netip.Prefix{}}
	for _, id := range slices.Sorted(maps.Keys(ethernets)) {
		if err := net.configure(ethernets[id], nics); err != nil {
			return network{}, fmt.Errorf("ethernets.%s: %w", id, err)
		}
	}
	return net, net.checkComplete(nics)
}

// defaultNetwork returns the network of a guest whose metadata does not configure one.
func defaultNetwork(nics []NIC, from Machine) (network, error) {
	if from.Customized {
		return customizedNetwork(nics)
	}
	return fallbackNetwork(nics)
}

// fallbackNetwork returns cloud-init's default without a configuration: DHCP on the first card.
func fallbackNetwork(nics []NIC) (network, error) {
	net := network{addresses: map[string][]netip.Prefix{}}
	if len(nics) == 0 {
		return net, nil
	}
	first := nics[0]
	if err := net.lease(first, false); err != nil {
		return network{}, fmt.Errorf("not configured, so the guest uses DHCP on its first NIC: %w", err)
	}
	net.primary = macKey(first.MAC)
	return net, net.checkComplete(nics)
}

// customizedNetwork returns the network that guest customization configures: each card with the address that VCD
// assigned.
func customizedNetwork(nics []NIC) (network, error) {
	net := network{addresses: map[string][]netip.Prefix{}}
	for _, nic := range nics {
		switch {
		case nic.Mode == ModeDHCP:
			if err := net.lease(nic, false); err != nil {
				return network{}, err
			}
		case nic.Address.IsValid():
			net.addresses[macKey(nic.MAC)] = []netip.Prefix{nic.Address}
		default:
			continue
		}
		if net.primary == "" {
			net.primary = macKey(nic.MAC)
		}
	}
	return net, net.checkComplete(nics)
}

// configure configures one ethernet.
func (n *network) configure(value any, nics []NIC) error {
	eth, err := ethernet(value)
	if err != nil {
		return err
	}
	matched, err := matchingNICs(eth, nics)
	if err != nil {
		return err
	}
	addresses, err := staticAddresses(eth)
	if err != nil {
		return err
	}
	isDefault, err := checkRoutes(eth, addresses)
	if err != nil {
		return err
	}
	if err := checkNameservers(eth); err != nil {
		return err
	}
	for _, nic := range matched {
		if err := n.bringUp(nic, addresses, eth); err != nil {
			return err
		}
		if isDefault && n.primary == "" {
			n.primary = macKey(nic.MAC)
		}
	}
	return nil
}

// ethernet checks the keys of one ethernet.
func ethernet(value any) (map[string]any, error) {
	eth, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not a mapping")
	}
	for key := range eth {
		if !slices.Contains(ethernetKeys, key) {
			return nil, fmt.Errorf("unknown key %s: netplan would reject the whole configuration", key)
		}
	}
	for _, family := range []string{"dhcp4-overrides", "dhcp6-overrides"} {
		overrides, _ := eth[family].(map[string]any)
		for key := range overrides {
			if !slices.Contains(overrideKeys, key) {
				return nil, fmt.Errorf("unknown key %s in %s: netplan would reject the whole configuration", key, family)
			}
		}
	}
	if eth["set-name"] != nil && eth["match"] == nil {
		return nil, errors.New("set-name needs match")
	}
	return eth, nil
}

func (n *network) bringUp(nic NIC, addresses []netip.Prefix, eth map[string]any) error {
	mac := macKey(nic.MAC)
	if _, twice := n.addresses[mac]; twice {
		return fmt.Errorf("card %s is configured twice", mac)
	}
	n.addresses[mac] = addresses
	if isTrue(eth["dhcp4"]) || isTrue(eth["dhcp6"]) {
		if err := n.lease(nic, len(addresses) > 0); err != nil {
			return err
		}
	}
	return n.checkAssigned(nic)
}

// lease adds the address that the DHCP server of the card's network would lease, or that the card forms after an
// advertisement of its router, which guests accept by default.
func (n *network) lease(nic NIC, haveStatic bool) error {
	mac := macKey(nic.MAC)
	switch {
	case nic.Mode == ModeDHCP && nic.Address.IsValid():
		n.addresses[mac] = append(n.addresses[mac], nic.Address)
	case nic.Mode != ModeDHCP && !haveStatic:
		return fmt.Errorf("card %s asks DHCP but VCD's address mode is %s (%s)", mac, nic.Mode,
			describeAddress(nic.Address))
	}
	return nil
}

// checkAssigned returns an error if a card is configured with an address other than the one that VCD assigned.
func (n *network) checkAssigned(nic NIC) error {
	if nic.Mode != ModePool && nic.Mode != ModeManual {
		return nil
	}
	mac := macKey(nic.MAC)
	for _, assigned := range []netip.Prefix{nic.Address, nic.Secondary} {
		if !assigned.IsValid() || slices.Contains(n.addresses[mac], assigned) {
			continue
		}
		var have []string
		for _, p := range n.addresses[mac] {
			have = append(have, p.String())
		}
		if len(have) == 0 {
			have = []string{"no static address"}
		}
		return fmt.Errorf("NIC %s would get %s, but VCD assigned %s", mac, strings.Join(have, ", "), assigned)
	}
	return nil
}

// checkComplete checks that every card with an address in VCD is configured, and that there is a primary card.
func (n *network) checkComplete(nics []NIC) error {
	for _, nic := range nics {
		mac := macKey(nic.MAC)
		addresses, up := n.addresses[mac]
		if !up && (nic.Mode == ModePool || nic.Mode == ModeManual) {
			return fmt.Errorf("card %s on network %s has %s in VCD but the guest does not configure it", mac,
				nic.Network, describeAddress(nic.Address))
		}
		if n.primary == "" && len(addresses) > 0 {
			n.primary = mac
		}
	}
	return nil
}

// matchingNICs returns the cards that the match of an ethernet selects.
func matchingNICs(eth map[string]any, nics []NIC) ([]NIC, error) {
	match, ok := eth["match"].(map[string]any)
	if !ok {
		return nil, errors.New("no match.macaddress, and the kernel name of the NIC is unknown")
	}
	if mac := scalar(match["macaddress"]); mac != "" {
		for _, nic := range nics {
			if strings.EqualFold(nic.MAC, mac) {
				return []NIC{nic}, nil
			}
		}
		return nil, fmt.Errorf("match.macaddress %s is not a NIC of this VM (it has %s)", mac, cards(nics))
	}
	pattern := scalar(match["name"])
	if pattern == "" {
		return nil, errors.New("match selects nothing: neither macaddress nor name")
	}
	for _, name := range []string{"ens192", "eth0"} {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return nics, nil
		}
	}
	return nil, fmt.Errorf("match.name %q selects no card", pattern)
}

// staticAddresses parses addresses, which may be strings or single-key mappings with options.
func staticAddresses(eth map[string]any) ([]netip.Prefix, error) {
	var out []netip.Prefix
	list, isList := eth["addresses"].([]any)
	if !isList && eth["addresses"] != nil {
		return nil, errors.New("addresses is not a list")
	}
	for _, item := range list {
		text := scalar(item)
		if options, ok := item.(map[string]any); ok && len(options) == 1 {
			for key := range options {
				text = key
			}
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("address %q is not an address with a prefix length", text)
		}
		out = append(out, prefix)
	}
	return out, nil
}

func macKey(mac string) string { return strings.ToLower(mac) }

func describeAddress(p netip.Prefix) string {
	if !p.IsValid() {
		return "no address"
	}
	return "address " + p.String()
}

func cards(nics []NIC) string {
	if len(nics) == 0 {
		return "none"
	}
	var macs []string
	for _, nic := range nics {
		macs = append(macs, macKey(nic.MAC))
	}
	return strings.Join(macs, ", ")
}
