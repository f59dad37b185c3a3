package vcdsim

import "slices"

const edgeRulesPath = "1.0.0/edgeGateways/{gateway}/firewall/rules"

// prepareRules gives the rules of a firewall ids and completes what they refer to. Who leaves versions out is not asked
// for them.
func prepareRules(field string) func(*request, map[string]any) error {
	return func(r *request, body map[string]any) error {
		rules, _ := body[field].([]any)
		for _, x := range rules {
			rule, ok := x.(map[string]any)
			if !ok {
				return badRequest("The firewall rule is invalid.")
			}
			if err := r.prepareRule(rule); err != nil {
				return err
			}
		}
		if rules == nil {
			body[field] = []any{}
		}
		return nil
	}
}

func (r *request) prepareRule(rule map[string]any) error {
	if text(rule, "id") == "" {
		rule["id"] = r.sim.ids.next("firewallRule")
	}
	action := text(rule, "actionValue")
	if action == "" {
		action = text(rule, "action")
	}
	if !slices.Contains([]string{"ALLOW", "DROP", "REJECT"}, action) {
		return badRequest("The firewall rule action %q is invalid.", action)
	}
	rule["actionValue"] = action
	if rule["action"] = action; action == "REJECT" {
		rule["action"] = nil // older clients know no REJECT
	}
	complete(rule, map[string]any{"enabled": true, "logging": false, "direction": "IN_OUT", "ipProtocol": "IPV4_IPV6"})
	version := 0
	if v, ok := rule["version"].(map[string]any); ok && v["version"] != nil {
		version = number(v["version"]) + 1
	}
	rule["version"] = map[string]any{"version": version}
	return r.ruleReferences(rule)
}

// ruleReferences completes what a rule refers to.
func (r *request) ruleReferences(rule map[string]any) error {
	for field, path := range map[string]string{"sourceFirewallGroups": groupPath, "destinationFirewallGroups": groupPath, "applicationPortProfiles": profilePath} {
		refs, _ := rule[field].([]any)
		for i, x := range refs {
			ref, err := r.reference(path, "FIREWALL_RULE_VIEW", refID(map[string]any{field: x}, field))
			if err != nil {
				return err
			}
			refs[i] = ref
		}
	}
	return nil
}

func firewallRoutes(add addRoute) {
	add("DELETE", "/cloudapi/1.0.0/edgeGateways/{gateway}/firewall/rules/{rule}", (*request).deleteEdgeRule, latencyWrite)
}

func edgeFirewall() *setting {
	return &setting{
		path: edgeRulesPath, kind: "edgeFirewall", title: "Firewall Rules", place: onGateway, prepare: prepareRules("userDefinedRules"), show: showEdgeRules,
	}
}

// deleteEdgeRule removes one rule of a gateway's firewall.
func (r *request) deleteEdgeRule() (*response, error) {
	p, err := onGateway(r)
	if err != nil {
		return nil, err
	}
	x := edgeFirewall()
	body, _ := x.now(r, p)
	rules, _ := body["userDefinedRules"].([]any)
	i, err := r.ruleIndex(rules)
	if err != nil {
		return nil, err
	}
	return x.change(r, map[string]any{"userDefinedRules": slices.Delete(slices.Clone(rules), i, i+1)})
}

func showEdgeRules(r *request, p place, out map[string]any) {
	if out["userDefinedRules"] == nil {
		out["userDefinedRules"] = []any{}
	}
	out["status"], out["systemRules"] = stateRealized, []any{}
	out["defaultRules"] = []any{map[string]any{
		"id": r.sim.ids.named("firewallRule", p.parent), "name": "default_rule", "action": "DROP", "actionValue": "DROP", "enabled": true, "logging": false,
		"direction": "IN_OUT", "ipProtocol": "IPV4_IPV6", "sourceFirewallGroups": nil, "destinationFirewallGroups": nil, "applicationPortProfiles": nil,
		"version": map[string]any{"version": 0},
	}}
	delete(out, "version")
}

// freeOfRules refuses to delete what a firewall rule refers to in one of some fields.
func (s *Simulator) freeOfRules(kind string, d *document, fields ...string) error {
	for _, x := range []struct{ path, field string }{{edgeRulesPath, "userDefinedRules"}, {dfwRulesPath, "values"}} {
		for _, doc := range s.store.documents[x.path] {
			rules, _ := doc.body[x.field].([]any)
			for _, item := range rules {
				rule, _ := item.(map[string]any)
				for _, f := range fields {
					if slices.Contains(members(rule, f), bare(d.id())) {
						return inUse(kind, text(d.body, "name"), "firewall rule "+text(rule, "name"))
					}
				}
			}
		}
	}
	return nil
}
