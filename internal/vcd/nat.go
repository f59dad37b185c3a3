package vcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// A NATRule is a NAT rule of a gateway.
type NATRule struct {
	ID          string // a UUID, not a URN
	Name        string
	Description string // carries the ownership marker
	Type        string // DNAT, SNAT, NO_DNAT, NO_SNAT, REFLEXIVE
	Enabled     bool
	External    string // an address, a range or a prefix
	Internal    string
	Port        int // external port of a DNAT rule; 0 for any
	Profile     Ref // application port profile; zero if there is none
	System      bool
}

// A DNATSpec is what a new DNAT rule looks like.
type DNATSpec struct {
	Name        string
	Description string
	External    string
	Internal    string
	Port        int    // external port
	Profile     string // URN of the application port profile
}

// A DNATChange is one change of a DNAT rule: what is nil stays as it is.
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
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Type        string   `json:"type"`
	RuleType    string   `json:"ruleType"` // the older field
	Enabled     bool     `json:"enabled"`
	External    string   `json:"externalAddresses"`
	Internal    string   `json:"internalAddresses"`
	Port        string   `json:"dnatExternalPort"`
	Profile     *wireRef `json:"applicationPortProfile"`
	System      bool     `json:"systemRule"`
}

func (w *wireNAT) rule() NATRule {
	rule := NATRule{
		ID: w.ID, Name: w.Name, Description: w.Description, Type: w.Type, Enabled: w.Enabled, External: w.External, Internal: w.Internal,
		Profile: w.Profile.ref(), System: w.System,
	}
	if rule.Type == "" {
		rule.Type = w.RuleType
	}
	if port, err := strconv.Atoi(w.Port); err == nil {
		rule.Port = port
	}
	return rule
}

func natPath(gateway, id string) string {
	path := gatewaysPath + url.PathEscape(gateway) + "/nat/rules"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// NAT holds the NAT rules of edge gateways, and the application port profiles that they name.
type NAT struct{ *client }

// Rules lists the NAT rules of a gateway, whoever they belong to. VCD pages this list by cursors, and knows no filter. It takes
// the right "Organization vDC Gateway: View NAT".
func (n *NAT) Rules(ctx context.Context, gateway string) ([]NATRule, error) {
	l := listing{path: natPath(gateway, ""), what: "NAT rules"}
	lines, err := listByCursor(ctx, n.client, l, func(w wireNAT) string { return w.ID })
	if err != nil {
		return nil, fmt.Errorf("listing NAT rules of edge gateway %s: %w", gateway, err)
	}
	rules := make([]NATRule, len(lines))
	for i := range lines {
		rules[i] = lines[i].rule()
	}
	return rules, nil
}

// CreateDNAT starts creating a DNAT rule. The task's owner may be the rule or the gateway: not every VCD tells the id of the new
// rule. It takes the right "Organization vDC Gateway: Configure NAT", as do all changes.
func (n *NAT) CreateDNAT(ctx context.Context, gateway string, spec DNATSpec) (Task, error) {
	task, err := n.startJSON(ctx, http.MethodPost, natPath(gateway, ""), map[string]any{
		"name": spec.Name, "description": spec.Description, "enabled": true, "ruleType": "DNAT", "type": "DNAT",
		"externalAddresses": spec.External, "internalAddresses": spec.Internal, "dnatExternalPort": strconv.Itoa(spec.Port),
		"applicationPortProfile": refTo(spec.Profile),
	})
	if err != nil {
		return Task{}, fmt.Errorf("creating NAT rule %s: %w", spec.Name, err)
	}
	return task, nil
}

// UpdateDNAT reads a DNAT rule, changes it and starts writing it back; what the change does not name stays as VCD wrote it. If
// it is so already, nothing is written, and the task has succeeded. [ErrChanged] means that somebody was quicker.
func (n *NAT) UpdateDNAT(ctx context.Context, gateway, id string, change DNATChange) (Task, error) {
	task, err := n.change(ctx, natPath(gateway, id), change.apply)
	if err != nil {
		return Task{}, fmt.Errorf("changing NAT rule %s: %w", id, err)
	}
	return task, nil
}

func (c DNATChange) apply(o object) (bool, error) {
	return either(
		setIf(o, "name", c.Name), setIf(o, "description", c.Description), setIf(o, "enabled", c.Enabled),
		setIf(o, "externalAddresses", c.External), setIf(o, "internalAddresses", c.Internal), setRef(o, "applicationPortProfile", c.Profile),
		setBy(c.Port, func(port int) bool { return o.set("dnatExternalPort", strconv.Itoa(port)) }),
	), nil
}

// DeleteRule starts deleting a NAT rule.
func (n *NAT) DeleteRule(ctx context.Context, gateway, id string) (Task, error) {
	task, err := n.startJSON(ctx, http.MethodDelete, natPath(gateway, id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting NAT rule %s: %w", id, err)
	}
	return task, nil
}

const profilesPath = "/cloudapi/1.0.0/applicationPortProfiles"

// A PortProfile is an application port profile: it names the port that a NAT rule sends to.
type PortProfile struct {
	Ref

	Description string // carries the ownership marker
	Scope       string // TENANT, PROVIDER or SYSTEM
	Status      Realization
	Protocol    string // TCP or UDP; empty if it has not just one
	Port        int    // 0 if it has not just one
}

// A PortProfileSpec is what a new profile looks like.
type PortProfileSpec struct {
	Name        string
	Description string
	Owner       string // URN of the VDC or VDC group: [Gateway.Owner]
	Protocol    string // TCP or UDP
	Port        int
}

type wireProfile struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Scope       string      `json:"scope"`
	Status      Realization `json:"status"`
	Ports       []struct {
		Protocol     string   `json:"protocol"`
		Destinations []string `json:"destinationPorts"`
	} `json:"applicationPorts"`
}

func (w *wireProfile) profile() PortProfile {
	p := PortProfile{Ref: Ref{ID: w.ID, Name: w.Name}, Description: w.Description, Scope: w.Scope, Status: w.Status}
	if len(w.Ports) == 1 && len(w.Ports[0].Destinations) == 1 {
		if port, err := strconv.Atoi(w.Ports[0].Destinations[0]); err == nil {
			p.Protocol, p.Port = w.Ports[0].Protocol, port
		}
	}
	return p
}

// PortProfiles lists the application port profiles of the organisation, whoever made them. It takes a right to
// view the organisation's networks.
func (n *NAT) PortProfiles(ctx context.Context) ([]PortProfile, error) {
	l := listing{path: profilesPath, what: "application port profiles", sort: "name", terms: []term{{"scope", "TENANT"}}}
	profiles, err := listAs(ctx, n.client, l, func(w wireProfile) string { return w.ID }, (*wireProfile).profile)
	if err != nil {
		return nil, fmt.Errorf("listing application port profiles: %w", err)
	}
	return profiles, nil
}

// CreatePortProfile starts creating an application port profile; the task's owner is the new one. It takes the right
// "Organization vDC Gateway: Configure NAT" or that of the firewall, as do all changes.
func (n *NAT) CreatePortProfile(ctx context.Context, spec PortProfileSpec) (Task, error) {
	task, err := n.startJSON(ctx, http.MethodPost, profilesPath, map[string]any{
		"name": spec.Name, "description": spec.Description, "scope": "TENANT", "contextEntityId": spec.Owner,
		"applicationPorts": applicationPorts(spec.Protocol, spec.Port),
	})
	if err != nil {
		return Task{}, fmt.Errorf("creating application port profile %s: %w", spec.Name, err)
	}
	return task, nil
}

func applicationPorts(protocol string, port int) []map[string]any {
	return []map[string]any{{"protocol": protocol, "destinationPorts": []string{strconv.Itoa(port)}}}
}

// A PortProfileChange is one change of an application port profile: what is nil stays as it is.
type PortProfileChange struct {
	Name        *string
	Description *string
	Port        *ProfilePort
}

// A ProfilePort is the one port of a profile.
type ProfilePort struct {
	Protocol string // TCP or UDP
	Port     int
}

// UpdatePortProfile reads an application port profile, changes it and starts writing it back; what the change does not name
// stays as VCD wrote it.
func (n *NAT) UpdatePortProfile(ctx context.Context, id string, change PortProfileChange) (Task, error) {
	task, err := n.change(ctx, profilesPath+"/"+url.PathEscape(id), func(o object) (bool, error) {
		changed := setIf(o, "name", change.Name)
		changed = setIf(o, "description", change.Description) || changed
		if change.Port != nil {
			var now wireProfile
			_ = json.Unmarshal(o["applicationPorts"], &now.Ports) // null is none
			if p := now.profile(); p.Protocol != change.Port.Protocol || p.Port != change.Port.Port {
				changed = o.set("applicationPorts", applicationPorts(change.Port.Protocol, change.Port.Port)) || changed
			}
		}
		return changed, nil
	})
	if err != nil {
		return Task{}, fmt.Errorf("changing application port profile %s: %w", id, err)
	}
	return task, nil
}

// DeletePortProfile starts deleting an application port profile, which no rule may use.
func (n *NAT) DeletePortProfile(ctx context.Context, id string) (Task, error) {
	task, err := n.startJSON(ctx, http.MethodDelete, profilesPath+"/"+url.PathEscape(id), nil)
	if err != nil {
		return Task{}, fmt.Errorf("deleting application port profile %s: %w", id, err)
	}
	return task, nil
}
