// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var (
	dnsLabel      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	digits        = regexp.MustCompile(`^[0-9]+$`)
	interfaceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
	imageName     = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\](:[0-9]+)?/)?[a-zA-Z0-9]([a-zA-Z0-9._:/@-]*[a-zA-Z0-9])?$`)
)

// complete sets defaults and rejects values that would only fail on the node. It is also strict about characters,
// because a template engine processes the file.
func (c *Config) complete() error {
	c.Mode = cmp.Or(c.Mode, StaticPod)
	c.Port = cmp.Or(c.Port, DefaultPort)
	c.Image = cmp.Or(c.Image, DefaultImage)
	if err := validateAddresses(c.Addresses); err != nil {
		return err
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", c.Port)
	}
	if c.Interface != "" && !IsInterface(c.Interface) {
		return fmt.Errorf("%q is not an interface name", c.Interface)
	}
	if !IsImage(c.Image) {
		return fmt.Errorf("%q is not a valid image name", c.Image)
	}
	if c.DynamicDNS && !c.hasName() {
		return fmt.Errorf("dynamic DNS requires a DNS name, but %s is an address", c.Addresses[0])
	}
	return c.validateBGP()
}

// IsInterface reports whether a value is the name of a network interface.
func IsInterface(value string) bool { return interfaceName.MatchString(value) }

// IsImage reports whether a value has only characters of image references.
func IsImage(value string) bool { return imageName.MatchString(value) }

// validateAddresses checks an endpoint: at most one address of each family, or one DNS name.
func validateAddresses(addresses []string) error {
	if len(addresses) == 0 || len(addresses) > 2 {
		return fmt.Errorf("there are %d addresses, but kube-vip supports only one, or one of each family", len(addresses))
	}
	for _, address := range addresses {
		if err := ValidateAddress(address); err != nil {
			return err
		}
	}
	if len(addresses) == 1 {
		return nil
	}
	if slices.ContainsFunc(addresses, func(address string) bool { return !isIP(address) }) {
		return fmt.Errorf("%s: a DNS name cannot be combined with other addresses", strings.Join(addresses, " and "))
	}
	if is4(addresses[0]) == is4(addresses[1]) {
		return fmt.Errorf("%s and %s are of the same family: dual stack requires one address of each", addresses[0], addresses[1])
	}
	return nil
}

// ValidateAddress checks that kube-vip can announce address, an IP address or a DNS name.
func ValidateAddress(address string) error {
	if addr, err := netip.ParseAddr(address); err == nil {
		return validateIP(addr)
	}
	labels := strings.Split(address, ".")
	if len(address) > 253 || digits.MatchString(labels[len(labels)-1]) {
		return fmt.Errorf("address %q is neither an IP address nor a DNS name", address)
	}
	for _, label := range labels {
		if !dnsLabel.MatchString(label) {
			return fmt.Errorf("address %q is neither an IP address nor a DNS name in lower case", address)
		}
	}
	return nil
}

func validateIP(addr netip.Addr) error {
	if addr.Is4In6() || addr.Zone() != "" || !addr.IsGlobalUnicast() {
		return fmt.Errorf("address %s cannot be announced on a network of nodes", addr)
	}
	return nil
}

func isIP(address string) bool {
	_, err := netip.ParseAddr(address)
	return err == nil
}

func is4(address string) bool {
	addr, err := netip.ParseAddr(address)
	return err == nil && addr.Is4()
}

// validateBGP checks the peers, and that each address has a peer of its family.
func (c *Config) validateBGP() error {
	switch {
	case c.BGP == nil:
		return nil
	case c.DynamicDNS:
		return errors.New("the address of dynamic DNS belongs to the nodes' network, so it requires ARP instead of BGP")
	case c.hasName():
		return fmt.Errorf("BGP requires an address, but %s is a DNS name", c.Addresses[0])
	}
	if err := c.BGP.validate(); err != nil {
		return err
	}
	for _, address := range c.Addresses {
		if !slices.ContainsFunc(c.BGP.Peers, func(p Peer) bool { return p.Address.Is4() == is4(address) }) {
			return fmt.Errorf("no BGP peer has the family of %s: kube-vip announces an address only to peers of the same family", address)
		}
	}
	return nil
}
