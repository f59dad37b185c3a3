// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const edgeRulesPath = "1.0.0/edgeGateways/{gateway}/firewall/rules"

// prepareRules gives the rules of a firewall ids and completes their references. Versions are checked only
// if they are sent.
func prepareRules(field string) func(*request, map[string]any) error {
	return func(r *request, body map[string]any) error {
		rules, _ := body[field].([]any)
		if err := atMost(body, field, maxEdgeRules); err != nil {
			return err
		}
		for _, x := range rules {
			rule, ok := x.(map[string]any)
			if !ok {
				return store.BadRequest("The firewall rule is invalid.")
			}
			if err := prepareFirewallRule(r, rule); err != nil {
				return err
			}
		}
		if rules == nil {
			body[field] = []any{}
		}
		return nil
	}
}

func prepareFirewallRule(r *request, rule map[string]any) error {
	if store.Text(rule, "id") == "" {
		rule["id"] = r.cloud.ids.Next("firewallRule")
	}
	if err := ruleSizes(r.cloud.assume, rule); err != nil {
		return err
	}
	action := store.Text(rule, "actionValue")
	if action == "" {
		action = store.Text(rule, "action")
	}
	if !slices.Contains([]string{"ALLOW", "DROP", "REJECT"}, action) {
		return store.BadRequest("The firewall rule action %q is invalid.", action)
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
	return ruleReferences(r.session, r.cloud.store, rule)
}

// ruleSizes refuses more of something than VMware's OpenAPI document allows in a rule.
func ruleSizes(a Assumptions, rule map[string]any) error {
	for _, field := range []string{"sourceFirewallGroups", "destinationFirewallGroups", "applicationPortProfiles"} {
		if err := atMost(rule, field, 128); err != nil {
			return err
		}
	}
	if n := len(store.Text(rule, "comments")); n > 2048 {
		return store.BadRequest("The length of the field comments is %d and must not exceed 2048.", n)
	}
	return withinSizes(a, rule)
}

// ruleReferences completes what a rule refers to.
func ruleReferences(session *store.Session, st *store.Store, rule map[string]any) error {
	for field, path := range map[string]string{
		"sourceFirewallGroups":      groupPath,
		"destinationFirewallGroups": groupPath,
		"applicationPortProfiles":   profilePath,
	} {
		refs, _ := rule[field].([]any)
		for i, x := range refs {
			ref, err := documentReference(session, st, path, "FIREWALL_RULE_VIEW", store.RefID(map[string]any{field: x}, field))
			if err != nil {
				return err
			}
			refs[i] = ref
		}
	}
	return nil
}

const edgeRulesOperation = "/cloudapi/" + edgeRulesPath

func firewallRoutes(add addRoute) {
	for operation, form := range map[string]ruleForm{
		edgeRulesOperation:   firstForm(),
		secondRulesOperation: secondForm(),
	} {
		add("POST", operation, form.create, latencyWrite)
		add("GET", operation+"/{rule}", form.get, latencyCloudAPI)
		add("PUT", operation+"/{rule}", form.put, latencyWrite)
		add("DELETE", operation+"/{rule}", with2(edgeRule, deleteEdgeRule), latencyWrite)
	}
	add("GET", secondRulesOperation, with(onGateway, getSecondRules), latencyCloudAPI)
	add("PUT", secondRulesOperation, putSecondRules, latencyWrite)
	add("DELETE", secondRulesOperation, edgeFirewall().remove, latencyWrite)
}

func edgeFirewall() *setting {
	return &setting{
		path:    edgeRulesPath,
		kind:    "edgeFirewall",
		title:   "Firewall Rules",
		scope:   onGateway,
		prepare: prepareRules("userDefinedRules"),
		show:    showEdgeRules,
	}
}

// edgeRules are the rules that users gave a gateway's firewall.
func edgeRules(r *request) ([]any, error) {
	p, err := onGateway(r)
	if err != nil {
		return nil, err
	}
	body, _ := edgeFirewall().now(r, p)
	rules, _ := body["userDefinedRules"].([]any)
	return slices.Clone(rules), nil
}

// edgeRule finds the rule in the path among them.
func edgeRule(r *request) (rules []any, at int, err error) {
	if rules, err = edgeRules(r); err != nil {
		return nil, 0, err
	}
	at, err = dfwRuleIndex(r, rules)
	return rules, at, err
}

// changeEdgeRules makes these the gateway's rules. What is new of them is prepared: the others keep their versions.
func changeEdgeRules(r *request, rules []any) (*response, error) {
	x := edgeFirewall()
	x.prepare = nil
	body := map[string]any{"userDefinedRules": rules}
	if err := atMost(body, "userDefinedRules", maxEdgeRules); err != nil {
		return nil, err
	}
	return x.change(r, body)
}

const maxEdgeRules = 1000

// create inserts one rule at the position in the request, by default at the bottom. The other rules do not change. The
// answer does not contain the rule's id: the task's owner is the gateway.
func (f ruleForm) create(r *request) (*response, error) {
	if since := r.cloud.assume.EdgeRuleCreateSince; r.version < since {
		return nil, store.Refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
			"The method POST is not allowed here before API version %s.", since)
	}
	rules, err := edgeRules(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.document(&rule); err != nil {
		return nil, err
	}
	at, err := edgeRulePosition(&r.cloud.assume, r.version, rule, rules)
	if err != nil {
		return nil, err
	}
	delete(rule, "id")
	delete(rule, "relativePosition")
	if err := f.prepare(r, rule); err != nil {
		return nil, err
	}
	return changeEdgeRules(r, slices.Insert(rules, at, any(rule)))
}

// edgeRulePosition is where a new rule goes.
func edgeRulePosition(assume *Assumptions, version string, rule map[string]any, rules []any) (int, error) {
	position, _ := rule["relativePosition"].(map[string]any)
	adjacent := slices.IndexFunc(rules, hasID(store.Text(position, "adjacentRuleId")))
	where := store.Text(position, "rulePosition")
	if since := assume.EdgeRuleTopSince; version < since && slices.Contains([]string{"TOP", "BOTTOM"}, where) {
		return 0, store.BadRequest("The rule position %q is invalid before API version %s.", where, since)
	}
	switch {
	case where == "TOP":
		return 0, nil
	case where == "BOTTOM" || position == nil:
		return len(rules), nil
	case where != "BEFORE" && where != "AFTER":
		return 0, store.BadRequest("The rule position %q is invalid.", where)
	case adjacent < 0:
		return 0, store.BadRequest("The adjacent rule %q does not exist.", store.Text(position, "adjacentRuleId"))
	case where == "AFTER":
		adjacent++
	}
	return adjacent, nil
}

// hasID reports whether something is a rule with an id.
func hasID(id string) func(any) bool {
	return func(v any) bool {
		m, _ := v.(map[string]any)
		return store.Text(m, "id") == id
	}
}

func (f ruleForm) get(r *request) (*response, error) {
	rules, at, err := edgeRule(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(f.shown(r.version, rules[at])), nil
}

func (f ruleForm) put(r *request) (*response, error) {
	rules, at, err := edgeRule(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.document(&rule); err != nil {
		return nil, err
	}
	rule["id"] = r.vars["rule"]
	if err := f.prepare(r, rule); err != nil {
		return nil, err
	}
	rules[at] = rule
	return changeEdgeRules(r, rules)
}

// deleteEdgeRule removes one rule of a gateway's firewall.
func deleteEdgeRule(r *request, rules []any, at int) (*response, error) {
	return changeEdgeRules(r, slices.Delete(rules, at, at+1))
}

func showEdgeRules(r *request, p scope, out map[string]any) {
	showRules(r.cloud.ids, p, out)
	firstForm().showAll(r.version, out)
}

func showRules(source *ids.Source, p scope, out map[string]any) {
	if out["userDefinedRules"] == nil {
		out["userDefinedRules"] = []any{}
	}
	out["status"] = stateRealized
	out["systemRules"] = []any{}
	out["defaultRules"] = []any{map[string]any{
		"id":                        source.Named("firewallRule", p.parent),
		"name":                      "default_rule",
		"action":                    "DROP",
		"actionValue":               "DROP",
		"enabled":                   true,
		"logging":                   false,
		"direction":                 "IN_OUT",
		"ipProtocol":                "IPV4_IPV6",
		"sourceFirewallGroups":      nil,
		"destinationFirewallGroups": nil,
		"applicationPortProfiles":   nil,
		"version":                   map[string]any{"version": 0},
	}}
	delete(out, "version")
}

// freeOfFirewallRules refuses to delete what a firewall rule refers to in one of some fields.
func freeOfFirewallRules(s *cloud, kind string, d *store.Object, fields ...string) error {
	for _, x := range []struct{ path, field string }{{edgeRulesPath, "userDefinedRules"}, {dfwRulesPath, "values"}} {
		for _, doc := range s.store.Documents[x.path] {
			rules, _ := doc.Body[x.field].([]any)
			for _, item := range rules {
				rule, _ := item.(map[string]any)
				for _, f := range fields {
					if slices.Contains(members(rule, f), store.Bare(d.ID())) {
						return inUse(kind, store.Text(d.Body, "name"), "firewall rule "+store.Text(rule, "name"))
					}
				}
			}
		}
	}
	return nil
}
