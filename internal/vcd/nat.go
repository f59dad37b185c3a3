// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A NATRule is a NAT rule of a gateway.
type NATRule struct {
	Ref // the ID is a UUID, not a URN

	Description string // contains the ownership marker
	Type        string // DNAT, SNAT, NO_DNAT, NO_SNAT, REFLEXIVE
	Enabled     bool
	External    string // an address, a range or a prefix
	Internal    string
	Port        int // external port of a DNAT rule; 0: any
	Profile     Ref // application port profile; may be zero
}

// A DNATChange is one change of a DNAT rule. Nil fields stay unchanged.
type DNATChange struct {
	Name        *string
	Description *string
	External    *string
	Internal    *string
	Port        *int
	Profile     *string
	Enabled     *bool
}

type wireNAT struct {
	wireObject

	Type     string    `json:"type"`
	RuleType string    `json:"ruleType"` // the older field
	Enabled  bool      `json:"enabled"`
	External string    `json:"externalAddresses"`
	Internal string    `json:"internalAddresses"`
	Port     string    `json:"dnatExternalPort"`
	Profile  *wire.Ref `json:"applicationPortProfile"`
}

func (w *wireNAT) rule() NATRule {
	port, _ := strconv.Atoi(w.Port) // may be empty
	return NATRule{
		Ref:         refOf(&w.Ref),
		Description: w.Description,
		Type:        cmp.Or(w.Type, w.RuleType),
		Enabled:     w.Enabled,
		External:    w.External,
		Internal:    w.Internal,
		Port:        port,
		Profile:     refOf(w.Profile),
	}
}

func natPath(gateway, id string) string {
	path := gatewaysPath + url.PathEscape(gateway) + "/nat/rules"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// NAT is the client for NAT rules of edge gateways and their application port profiles.
type NAT struct{ client *api.Client }

// Rules lists the NAT rules of a gateway, of all owners. VCD paginates this list with cursors and supports no filter.
// Rules requires the right "Organization vDC Gateway: View NAT".
func (n *NAT) Rules(ctx context.Context, gateway string) ([]NATRule, error) {
	l := api.Listing{Path: natPath(gateway, ""), What: "NAT rules", Of: " of edge gateway " + gateway}
	lines, err := api.ListByCursor[wireNAT](ctx, n.client, l)
	rules := make([]NATRule, len(lines))
	for i := range lines {
		rules[i] = lines[i].rule()
	}
	return rules, err
}

// CreateDNAT starts the creation of a DNAT rule. The owner of the task may be the rule or the gateway, because not
// every VCD returns the ID of the new rule. Like all changes, it requires the right "Organization vDC Gateway:
// Configure NAT".
func (n *NAT) CreateDNAT(ctx context.Context, gateway string, rule NATRule) (Task, error) {
	return startCreating(ctx, n.client, "NAT rule", rule.Name, natPath(gateway, ""), map[string]any{
		"name":                   rule.Name,
		"description":            rule.Description,
		"enabled":                true,
		"ruleType":               "DNAT",
		"type":                   "DNAT",
		"externalAddresses":      rule.External,
		"internalAddresses":      rule.Internal,
		"dnatExternalPort":       strconv.Itoa(rule.Port),
		"applicationPortProfile": wire.RefTo(rule.Profile.ID),
	})
}

// UpdateDNAT reads a DNAT rule, changes it and starts writing it back. Fields that the change does not set are sent as
// VCD returned them. If nothing changes, UpdateDNAT writes nothing and returns a succeeded task. [ErrChanged] means
// that the rule was changed in the meantime.
func (n *NAT) UpdateDNAT(ctx context.Context, gateway, id string, change DNATChange) (Task, error) {
	return startChanging(ctx, n.client, "NAT rule", id, natPath(gateway, id), change.apply)
}

func (c DNATChange) apply(o wire.Object) (bool, error) {
	return wire.Either(
		wire.SetIf(o, "name", c.Name), wire.SetIf(o, "description", c.Description), wire.SetIf(o, "enabled", c.Enabled),
		wire.SetIf(o, "externalAddresses", c.External), wire.SetIf(o, "internalAddresses", c.Internal),
		wire.SetRef(o, "applicationPortProfile", c.Profile),
		wire.SetBy(o, c.Port, func(o wire.Object, port int) bool { return o.Set("dnatExternalPort", strconv.Itoa(port)) }),
	), nil
}

// DeleteRule starts the deletion of a NAT rule.
func (n *NAT) DeleteRule(ctx context.Context, gateway, id string) (Task, error) {
	return startDeleting(ctx, n.client, "NAT rule", id, natPath(gateway, id))
}
