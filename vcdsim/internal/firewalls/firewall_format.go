// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// v2RulesOperation is the path of version 2.0.0 of the firewall API. It shows the same rules in one object, but uses
// "active" instead of "enabled", and specifies ports without application port profiles. VMware documents it since API
// version 38.1.
const v2RulesOperation = "/cloudapi/2.0.0/edgeGateways/{gateway}/firewall/rules"

// A ruleFormat converts the rules of a gateway's firewall for a version of the path.
type ruleFormat struct {
	read func(rule map[string]any) error // converts a rule of a request for the store
	// show converts a rule of the store for a response in an API version.
	show func(version string, rule map[string]any)
}

func v1Format() ruleFormat {
	return ruleFormat{
		read: func(map[string]any) error { return nil },
		show: func(version string, rule map[string]any) {
			delete(rule, "rawPortProtocols")
			if version < "38.1" {
				delete(rule, "sourceFirewallIpAddresses")
				delete(rule, "destinationFirewallIpAddresses")
			}
		},
	}
}

func v2Format() ruleFormat {
	return ruleFormat{
		read: readV2Rule,
		show: func(_ string, rule map[string]any) {
			rule["active"] = rule["enabled"]
			delete(rule, "enabled")
			delete(rule, "action")
		},
	}
}

// prepare converts and checks a rule of a request before it is stored.
func (f ruleFormat) prepare(r *api.Request, rule map[string]any) error {
	if err := f.read(rule); err != nil {
		return err
	}
	return prepareFirewallRule(r, rule)
}

func (f ruleFormat) shown(version string, rule any) map[string]any {
	kept, _ := rule.(map[string]any)
	out := maps.Clone(kept)
	f.show(version, out)
	return out
}

// ruleLists are the fields with the lists of rules in a gateway's firewall.
var ruleLists = []string{"systemRules", "userDefinedRules", "defaultRules"}

func (f ruleFormat) showAll(version string, out map[string]any) {
	for _, field := range ruleLists {
		list, _ := out[field].([]any)
		shown := make([]any, len(list))
		for i, rule := range list {
			shown[i] = f.shown(version, rule)
		}
		out[field] = shown
	}
}

func getV2Rules(r *api.Request, p documents.Scope) (*api.Response, error) {
	x := edgeFirewall()
	out, _ := x.Now(r, p)
	showRules(r.Cloud.IDs, p, out)
	v2Format().showAll(r.Version, out)
	return api.JSON(out), nil
}

// putV2Rules replaces all user-defined rules.
func putV2Rules(r *api.Request) (*api.Response, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	rules, _ := body["userDefinedRules"].([]any)
	for _, x := range rules {
		rule, ok := x.(map[string]any)
		if !ok {
			return nil, store.BadRequest("The firewall rule is invalid.")
		}
		if err := readV2Rule(rule); err != nil {
			return nil, err
		}
	}
	return edgeFirewall().Change(r, map[string]any{"userDefinedRules": rules})
}

// readV2Rule converts a rule of version 2.0.0, and checks the fields that only this version has.
func readV2Rule(rule map[string]any) error {
	if rule["active"] != nil {
		rule["enabled"] = rule["active"]
	}
	delete(rule, "active")
	family := store.Text(rule, "ipProtocol")
	for _, field := range []string{"sourceFirewallIpAddresses", "destinationFirewallIpAddresses"} {
		if err := documents.AtMost(rule, field, 128); err != nil {
			return err
		}
		for _, a := range stringList(rule[field]) {
			if !matchesFamily(a, family) {
				return store.BadRequest("The IP address %q is invalid for the IP protocol %s.", a, family)
			}
		}
	}
	list, _ := rule["rawPortProtocols"].([]any)
	for _, x := range list {
		item, _ := x.(map[string]any)
		if err := checkPortItem(item); err != nil {
			return err
		}
	}
	return nil
}

// matchesFamily reports whether a string is an address, prefix or range of the IP protocol of a rule.
func matchesFamily(a, family string) bool {
	first, _, _ := strings.Cut(a, "-")
	first, length, prefix := strings.Cut(first, "/")
	addr, err := netip.ParseAddr(first)
	if err != nil {
		return false
	}
	if bits, err := strconv.Atoi(length); prefix && (err != nil || bits < 0 || bits > addr.BitLen()) {
		return false
	}
	return family == "" || family == "IPV4_IPV6" || addr.Is4() == (family == "IPV4")
}

// maxItemPorts is the maximum number of ports that NSX accepts in one item.
const maxItemPorts = 15

func checkPortItem(item map[string]any) error {
	layer4, ok := item["layer4Item"].(map[string]any)
	if !ok {
		return store.BadRequest("The field layer4Item must not be empty.")
	}
	if p := store.Text(layer4, "protocol"); p != "TCP" && p != "UDP" {
		return store.BadRequest("The protocol %q is invalid.", p)
	}
	for _, field := range []string{"sourcePorts", "destinationPorts"} {
		if err := documents.AtMost(layer4, field, maxItemPorts); err != nil {
			return err
		}
		for _, p := range stringList(layer4[field]) {
			if !isPortOrRange(p) {
				return store.BadRequest("The port %q is invalid.", p)
			}
		}
	}
	return nil
}

// isPortOrRange reports whether a string is a port or a range of ports.
func isPortOrRange(s string) bool {
	first, last, isRange := strings.Cut(s, "-")
	from, err := strconv.ParseUint(first, 10, 16)
	if err != nil || !isRange {
		return err == nil
	}
	to, err := strconv.ParseUint(last, 10, 16)
	return err == nil && from <= to
}
