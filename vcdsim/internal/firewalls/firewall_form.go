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

// secondRulesOperation is the second version of the firewall's API. It shows the same rules in one object, but writes
// "active" for "enabled", and names ports without application port profiles. VMware's pages have it since 38.1.
const secondRulesOperation = "/cloudapi/2.0.0/edgeGateways/{gateway}/firewall/rules"

// A ruleForm is how a version of the API writes the rules of a gateway's firewall.
type ruleForm struct {
	read func(rule map[string]any) error // makes a rule what is kept
	// show makes what is kept a rule, for a version of the API.
	show func(version string, rule map[string]any)
}

func firstForm() ruleForm {
	return ruleForm{
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

func secondForm() ruleForm {
	return ruleForm{
		read: readSecondRule,
		show: func(_ string, rule map[string]any) {
			rule["active"] = rule["enabled"]
			delete(rule, "enabled")
			delete(rule, "action")
		},
	}
}

// prepare makes a rule of a request what is kept.
func (f ruleForm) prepare(r *api.Request, rule map[string]any) error {
	if err := f.read(rule); err != nil {
		return err
	}
	return prepareFirewallRule(r, rule)
}

func (f ruleForm) shown(version string, rule any) map[string]any {
	kept, _ := rule.(map[string]any)
	out := maps.Clone(kept)
	f.show(version, out)
	return out
}

// ruleLists are the lists of rules in the object that has all of a gateway's firewall.
var ruleLists = []string{"systemRules", "userDefinedRules", "defaultRules"}

func (f ruleForm) showAll(version string, out map[string]any) {
	for _, field := range ruleLists {
		list, _ := out[field].([]any)
		shown := make([]any, len(list))
		for i, rule := range list {
			shown[i] = f.shown(version, rule)
		}
		out[field] = shown
	}
}

func getSecondRules(r *api.Request, p documents.Scope) (*api.Response, error) {
	x := edgeFirewall()
	out, _ := x.Now(r, p)
	showRules(r.Cloud.IDs, p, out)
	secondForm().showAll(r.Version, out)
	return api.JSON(out), nil
}

// putSecondRules replaces all rules.
func putSecondRules(r *api.Request) (*api.Response, error) {
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
		if err := readSecondRule(rule); err != nil {
			return nil, err
		}
	}
	return edgeFirewall().Change(r, map[string]any{"userDefinedRules": rules})
}

// readSecondRule checks what only the second version knows.
func readSecondRule(rule map[string]any) error {
	if rule["active"] != nil {
		rule["enabled"] = rule["active"]
	}
	delete(rule, "active")
	family := store.Text(rule, "ipProtocol")
	for _, field := range []string{"sourceFirewallIpAddresses", "destinationFirewallIpAddresses"} {
		if err := documents.AtMost(rule, field, 128); err != nil {
			return err
		}
		for _, a := range strs(rule[field]) {
			if !ofFamily(a, family) {
				return store.BadRequest("The IP address %q is invalid for the IP protocol %s.", a, family)
			}
		}
	}
	list, _ := rule["rawPortProtocols"].([]any)
	for _, x := range list {
		item, _ := x.(map[string]any)
		if err := portItem(item); err != nil {
			return err
		}
	}
	return nil
}

// ofFamily reports whether a text is an address, prefix or range of the family a rule is for.
func ofFamily(a, family string) bool {
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

// maxItemPorts is how many ports NSX takes in one item.
const maxItemPorts = 15

func portItem(item map[string]any) error {
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
		for _, p := range strs(layer4[field]) {
			if !portText(p) {
				return store.BadRequest("The port %q is invalid.", p)
			}
		}
	}
	return nil
}

// portText reports whether a text is a port or a range of ports.
func portText(s string) bool {
	first, last, isRange := strings.Cut(s, "-")
	from, err := strconv.ParseUint(first, 10, 16)
	if err != nil || !isRange {
		return err == nil
	}
	to, err := strconv.ParseUint(last, 10, 16)
	return err == nil && from <= to
}
