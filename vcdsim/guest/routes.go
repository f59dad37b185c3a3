// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// checkRoutes validates gateways and routes, and reports whether there is a default route, possibly from DHCP.
func checkRoutes(eth map[string]any, addresses []netip.Prefix) (isDefault bool, _ error) {
	isDefault = isTrue(eth["dhcp4"])
	for _, key := range []string{"gateway4", "gateway6"} {
		text := scalar(eth[key])
		if text == "" {
			continue
		}
		if err := checkGateway(text, addresses, false); err != nil {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		isDefault = true
	}
	routes, isList := eth["routes"].([]any)
	if !isList && eth["routes"] != nil {
		return false, errors.New("routes is not a list")
	}
	for i, item := range routes {
		route, ok := item.(map[string]any)
		if !ok {
			return false, fmt.Errorf("routes[%d] is not a mapping", i)
		}
		toDefault, err := checkRoute(route, addresses)
		if err != nil {
			return false, fmt.Errorf("routes[%d]: %w", i, err)
		}
		isDefault = isDefault || toDefault
	}
	return isDefault, nil
}

func checkRoute(route map[string]any, addresses []netip.Prefix) (isDefault bool, _ error) {
	to := scalar(route["to"])
	isDefault = slices.Contains([]string{"default", "0.0.0.0/0", "::/0"}, to)
	if !isDefault {
		_, errPrefix := netip.ParsePrefix(to)
		_, errAddr := netip.ParseAddr(to)
		if errPrefix != nil && errAddr != nil {
			return false, fmt.Errorf("to %q is neither default nor a subnet", to)
		}
	}
	via := scalar(route["via"])
	if via == "" {
		if scalar(route["scope"]) == "link" {
			return isDefault, nil
		}
		return false, errors.New("via is missing")
	}
	return isDefault, checkGateway(via, addresses, isTrue(route["on-link"]))
}

// checkGateway returns an error if the guest cannot reach a gateway from the card's subnets. Without static addresses
// the subnet comes from DHCP and is not checked.
func checkGateway(text string, addresses []netip.Prefix, onLink bool) error {
	gateway, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("gateway %q is not an address", text)
	}
	if onLink || gateway.IsLinkLocalUnicast() || len(addresses) == 0 {
		return nil
	}
	if slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Contains(gateway) }) {
		return nil
	}
	return fmt.Errorf("gateway %s is outside the subnets of the card's addresses %v", gateway, addresses)
}

func checkNameservers(eth map[string]any) error {
	servers, ok := eth["nameservers"].(map[string]any)
	if !ok {
		if eth["nameservers"] != nil {
			return errors.New("nameservers is not a mapping")
		}
		return nil
	}
	for key := range servers {
		if key != "addresses" && key != "search" {
			return fmt.Errorf("nameservers: unknown key %s", key)
		}
	}
	for _, text := range texts(servers["addresses"]) {
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("nameservers: %q is not an address", text)
		}
	}
	return nil
}
