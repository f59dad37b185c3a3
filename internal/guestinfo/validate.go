// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
)

const (
	maxHostname = 253
	minMTU      = 576 // minimum of IPv4; nothing works below it
	maxMTU      = 65535
)

var (
	hostnameLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

	// The kernel allows more characters than kube-vip. The maximum length is IFNAMSIZ minus one.
	interfaceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
)

// validateHostname validates a hostname against RFC 1123 and the rules of Kubernetes, because the kubelet registers its
// Node with this name.
func validateHostname(name string) error {
	if len(name) > maxHostname {
		return fmt.Errorf("host name %q has %d characters, the limit is %d", name, len(name), maxHostname)
	}
	for label := range strings.SplitSeq(name, ".") {
		if !hostnameLabel.MatchString(label) {
			return fmt.Errorf("host name %q is not valid: it needs labels of lower-case letters, digits and inner hyphens, up to 63 characters each, separated by dots", name)
		}
	}
	return nil
}

func validateNICs(nics []NIC) error {
	primaries := 0
	macs := map[string]bool{}
	names := map[string]bool{}
	for i, nic := range nics {
		if err := nic.validate(); err != nil {
			return fmt.Errorf("NIC %d: %w", i, err)
		}
		mac, err := parseMAC(nic.MAC)
		if err != nil {
			return fmt.Errorf("NIC %d: %w", i, err)
		}
		if macs[mac] {
			return fmt.Errorf("NIC %d: MAC address %s is used by two NICs", i, mac)
		}
		if nic.Name != "" && names[nic.Name] {
			return fmt.Errorf("NIC %d: name %s is used by two NICs", i, nic.Name)
		}
		macs[mac] = true
		names[nic.Name] = true
		if nic.Primary {
			primaries++
		}
	}
	if len(nics) > 0 && primaries != 1 {
		return fmt.Errorf("%d NICs are primary, but exactly one must be", primaries)
	}
	return nil
}

func parseMAC(s string) (string, error) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 {
		return "", fmt.Errorf("%q is not a MAC address", s)
	}
	return mac.String(), nil
}

func (n NIC) validate() error {
	if n.Name != "" && !interfaceName.MatchString(n.Name) {
		return fmt.Errorf("%q is not an interface name", n.Name)
	}
	if n.MTU != 0 && (n.MTU < minMTU || n.MTU > maxMTU) {
		return fmt.Errorf("MTU %d is not between %d and %d", n.MTU, minMTU, maxMTU)
	}
	if err := n.validateDNS(); err != nil {
		return err
	}
	if err := n.validateRoutes(); err != nil {
		return err
	}
	return n.validateMode()
}

func (n NIC) validateMode() error {
	switch n.Mode {
	case ModePool, ModeManual:
		return n.validateAddresses()
	case ModeDHCP:
		if n.DHCP.Hostname == "" {
			return nil
		}
		return validateHostname(n.DHCP.Hostname)
	case ModeNone:
		if n.Primary {
			return errors.New("a NIC of mode NONE cannot be the primary one")
		}
		return nil
	default:
		return fmt.Errorf("mode %q is unknown", n.Mode)
	}
}

func (n NIC) validateDNS() error {
	for _, addr := range n.DNS {
		if !addr.IsValid() || addr.Is4In6() || addr.Zone() != "" {
			return fmt.Errorf("%q is not the address of a name server", addr)
		}
	}
	for _, domain := range n.SearchDomains {
		if err := validateHostname(strings.ToLower(strings.TrimSuffix(domain, "."))); err != nil {
			return fmt.Errorf("search domain %q is not valid", domain)
		}
	}
	return nil
}

// validateAddresses refuses addresses that a guest would configure without being reachable.
func (n NIC) validateAddresses() error {
	if len(n.Addresses) == 0 {
		return fmt.Errorf("mode %s needs an address", n.Mode)
	}
	families := map[bool]bool{}
	for _, address := range n.Addresses {
		addr := address.Addr()
		switch {
		case !address.IsValid():
			return fmt.Errorf("mode %s needs an address", n.Mode)
		case !isHost(addr):
			return fmt.Errorf("%s is not a valid address for a machine", addr)
		case families[addr.Is4()]:
			return fmt.Errorf("%s is the second address of its family", addr)
		}
		families[addr.Is4()] = true
	}
	for _, gateway := range n.Gateways {
		if err := n.validateGateway(gateway); err != nil {
			return err
		}
	}
	return nil
}

// isHost reports whether an address can be assigned to a machine.
func isHost(addr netip.Addr) bool {
	return !addr.Is4In6() && !addr.IsUnspecified() && !addr.IsMulticast() && !addr.IsLoopback()
}

func (n NIC) validateGateway(gateway netip.Addr) error {
	if !gateway.IsValid() || gateway.Zone() != "" || gateway.Is4In6() {
		return fmt.Errorf("%s is not a valid address for a gateway", gateway)
	}
	for _, address := range n.Addresses {
		switch {
		case gateway == address.Addr():
			return fmt.Errorf("address %s is also the gateway", gateway)
		case gateway.Is4() == address.Addr().Is4() && (address.Contains(gateway) || gateway.IsLinkLocalUnicast()):
			return nil
		}
	}
	var subnets []string
	for _, address := range n.Addresses {
		subnets = append(subnets, address.Masked().String())
	}
	return fmt.Errorf("gateway %s is not in the subnet %s", gateway, strings.Join(subnets, ", "))
}

func (n NIC) validateRoutes() error {
	for _, r := range n.Routes {
		if !r.To.IsValid() || !r.Via.IsValid() || r.To.Addr().Is4() != r.Via.Is4() || r.Via.Zone() != "" {
			return fmt.Errorf("route to %s via %s requires a subnet and a gateway of the same family", r.To, r.Via)
		}
	}
	return nil
}
