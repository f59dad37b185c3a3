package vcd

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
)

// A FirewallRule is a rule of a gateway's firewall that a person, or a program, made.
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
}

type wireRule struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Comments    string `json:"comments"`
	Active      bool   `json:"active"`
	Action      string `json:"actionValue"`
}

// rulesPath is the second version of the firewall's API: the first can only write all rules at once, which would undo what
// others write in the same moment.
func rulesPath(gateway, id string) string {
	path := "/cloudapi/2.0.0/edgeGateways/" + url.PathEscape(gateway) + "/firewall/rules"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// FirewallRules lists the rules of a gateway's firewall that are not VCD's own. It takes VCD 10.5.1, see
// [Features.SingleFirewallRule], and the right "Organization vDC Gateway: View Firewall".
func (s *Session) FirewallRules(ctx context.Context, gateway string) ([]FirewallRule, error) {
	lines, err := listByCursor(ctx, s, listing{path: rulesPath(gateway, ""), what: "firewall rules"}, func(w wireRule) string { return w.ID })
	if err != nil {
		return nil, fmt.Errorf("listing firewall rules of edge gateway %s: %w", gateway, err)
	}
	rules := make([]FirewallRule, len(lines))
	for i, w := range lines {
		rules[i] = FirewallRule{ID: w.ID, Name: w.Name, Description: w.Comments, Enabled: w.Active, Action: w.Action}
		if rules[i].Description == "" {
			rules[i].Description = w.Description
		}
	}
	return rules, nil
}

// CreateFirewallRule starts creating one rule, before all others, without touching them. It takes VCD 10.5.1, see [Features.SingleFirewallRule], and the
// right "Organization vDC Gateway: Configure Firewall".
func (s *Session) CreateFirewallRule(ctx context.Context, gateway string, spec FirewallRuleSpec) (Task, error) {
	sources := make([]string, len(spec.Sources))
	for i, p := range spec.Sources {
		sources[i] = p.String()
	}
	ports := make([]string, len(spec.Ports))
	for i, p := range spec.Ports {
		ports[i] = strconv.Itoa(p)
	}
	family := "IPV4"
	if spec.Destination.Is6() {
		family = "IPV6"
	}
	task, err := s.startJSON(ctx, http.MethodPost, rulesPath(gateway, ""), map[string]any{
		"name": spec.Name, "comments": spec.Description, "active": true, "actionValue": spec.Action, "direction": "IN_OUT", "ipProtocol": family,
		"sourceFirewallIpAddresses": sources, "destinationFirewallIpAddresses": []string{spec.Destination.String()},
		"rawPortProtocols": []any{map[string]any{"layer4Item": map[string]any{"protocol": spec.Protocol, "destinationPorts": ports}}},
		"relativePosition": map[string]any{"rulePosition": "TOP"},
	})
	if err != nil {
		return Task{}, fmt.Errorf("creating firewall rule %s: %w", spec.Name, err)
	}
	return task, nil
}

// DeleteFirewallRule starts deleting one rule.
func (s *Session) DeleteFirewallRule(ctx context.Context, gateway, id string) (Task, error) {
	task, err := s.startJSON(ctx, http.MethodDelete, rulesPath(gateway, id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting firewall rule %s: %w", id, err)
	}
	return task, nil
}
