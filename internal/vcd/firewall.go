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

// A FirewallRule is a user-defined rule of a gateway's firewall.
type FirewallRule struct {
	ID          string // a UUID, not a URN
	Name        string
	Description string // contains the ownership marker
	Enabled     bool
	Action      string // ALLOW, DROP or REJECT
}

// A FirewallRuleSpec describes a new rule for traffic to one address.
type FirewallRuleSpec struct {
	Name        string
	Description string
	Sources     []netip.Prefix // empty: any
	Destination netip.Addr
	Protocol    string // TCP or UDP
	Ports       []int
	Action      string // ALLOW or DROP
	Before      string // ID of the rule before which to insert it; empty: last
}

type wireRule struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Comments    string `json:"comments"`
	Active      bool   `json:"active"`
	Action      string `json:"actionValue"`
}

// singleRuleAPI is the first API version that can create a single rule, and the first with the path for it.
var singleRuleAPI = transport.Version{Major: 38, Minor: 1}

// secondFirewallPath is the prefix of the second version of the firewall API. In the first version, rules need a port
// profile for each port.
const secondFirewallPath = "/cloudapi/2.0.0/edgeGateways/"

func rulesPath(gateway, id string) string {
	path := secondFirewallPath + url.PathEscape(gateway) + "/firewall/rules"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// Firewall is the client for firewall rules and IP sets of edge gateways.
type Firewall struct{ client *api.Client }

// Rules lists the user-defined rules of a gateway's firewall, in order. This list of VCD has no pages. Rules requires
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

// itemPorts is the maximum number of ports that NSX accepts in one item of a rule.
const itemPorts = 15

// CreateRule starts the creation of one rule without changing the others. The owner of the task is the gateway, because
// VCD does not return the ID of the new rule. CreateRule requires VCD 10.5.1, see [Features.SingleFirewallRule], and
// the right "Organization vDC Gateway: Configure Firewall". [ErrInvalid] may mean that the rule in spec.Before no
// longer exists.
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
	if spec.Before != "" { // the first rule has no position: API 38.1 only supports positions relative to a rule
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

// DeleteRule starts the deletion of one rule.
func (f *Firewall) DeleteRule(ctx context.Context, gateway, id string) (Task, error) {
	return startDeleting(ctx, f.client, "firewall rule", id, rulesPath(gateway, id))
}
