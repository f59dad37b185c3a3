// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A FirewallRule is a rule of a gateway's firewall that VCD itself did not create.
type FirewallRule struct {
	ID          string // a UUID, not a URN
	Name        string
	Description string // carries the ownership marker
	Enabled     bool
	Action      string // ALLOW, DROP or REJECT
}

// A FirewallRuleSpec is a rule for what goes to one address.
type FirewallRuleSpec struct {
	Name        string
	Description string
	Sources     []netip.Prefix // empty: everybody
	Destination netip.Addr
	Protocol    string // TCP or UDP
	Ports       []int
	Action      string // ALLOW or DROP
	Before      string // id of the rule that it comes before; empty where there is none: it comes last
}

type wireRule struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Comments    string `json:"comments"`
	Active      bool   `json:"active"`
	Action      string `json:"actionValue"`
}

// singleRuleAPI is the version of the API that brought creating one rule without the others, and the path for it.
var singleRuleAPI = transport.Version{Major: 38, Minor: 1}

// secondFirewallPath begins the second version of the firewall's API: of the first, rules cannot name ports without a
// profile for each.
const secondFirewallPath = "/cloudapi/2.0.0/edgeGateways/"

func rulesPath(gateway, id string) string {
	path := secondFirewallPath + url.PathEscape(gateway) + "/firewall/rules"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// Firewall holds the firewall rules and IP sets of edge gateways.
type Firewall struct{ client *api.Client }

// Rules lists the rules of a gateway's firewall that are not VCD's own, in their order. VCD has no pages here. It takes
// VCD 10.5.1, see [Features.SingleFirewallRule], and the right "Organization vDC Gateway: View Firewall".
func (f *Firewall) Rules(ctx context.Context, gateway string) ([]FirewallRule, error) {
	lines, err := f.rules(ctx, gateway)
	if err != nil {
		return nil, failure.Wrap(err, "listing firewall rules of edge gateway", gateway)
	}
	rules := make([]FirewallRule, len(lines))
	for i, w := range lines {
		rules[i] = FirewallRule{
			ID:          w.ID,
			Name:        w.Name,
			Description: cmp.Or(w.Comments, w.Description),
			Enabled:     w.Active,
			Action:      w.Action,
		}
	}
	return rules, nil
}

func (f *Firewall) rules(ctx context.Context, gateway string) ([]wireRule, error) {
	all, err := f.client.Object(ctx, rulesPath(gateway, ""))
	if err != nil {
		return nil, err
	}
	raw, ok := all["userDefinedRules"]
	if !ok {
		return nil, failure.Unavailable("the response has no user-defined rules")
	}
	var lines []wireRule
	return lines, wire.DecodeJSON(raw, &lines)
}

// itemPorts is how many ports NSX takes in one item of a rule.
const itemPorts = 15

// CreateRule starts creating one rule without touching the others. The task is the gateway's: VCD does not return the
// id of the new rule. It takes VCD 10.5.1, see [Features.SingleFirewallRule], and the right "Organization vDC Gateway:
// Configure Firewall". [ErrInvalid] may mean that the rule is gone that it was to come before.
func (f *Firewall) CreateRule(ctx context.Context, gateway string, spec FirewallRuleSpec) (Task, error) {
	sources := make([]string, len(spec.Sources))
	for i, p := range spec.Sources {
		sources[i] = p.String()
	}
	family := "IPV4"
	if spec.Destination.Is6() {
		family = "IPV6"
	}
	body := map[string]any{
		"name":                           spec.Name,
		"comments":                       spec.Description,
		"active":                         true,
		"actionValue":                    spec.Action,
		"direction":                      "IN_OUT",
		"ipProtocol":                     family,
		"sourceFirewallIpAddresses":      sources,
		"destinationFirewallIpAddresses": []string{spec.Destination.String()},
		"rawPortProtocols":               portItems(spec.Protocol, spec.Ports),
	}
	if spec.Before != "" { // the first rule goes without: 38.1 knows no position but beside another rule
		body["relativePosition"] = map[string]any{"rulePosition": "BEFORE", "adjacentRuleId": spec.Before}
	}
	return startCreating(ctx, f.client, "firewall rule", spec.Name, rulesPath(gateway, ""), body)
}

func portItems(protocol string, ports []int) []any {
	var items []any
	for chunk := range slices.Chunk(ports, itemPorts) {
		texts := make([]string, len(chunk))
		for i, p := range chunk {
			texts[i] = strconv.Itoa(p)
		}
		items = append(items,
			map[string]any{"layer4Item": map[string]any{"protocol": protocol, "destinationPorts": texts}})
	}
	return items
}

// DeleteRule starts deleting one rule.
func (f *Firewall) DeleteRule(ctx context.Context, gateway, id string) (Task, error) {
	return startDeleting(ctx, f.client, "firewall rule", id, rulesPath(gateway, id))
}
