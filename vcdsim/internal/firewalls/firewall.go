// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const edgeRulesPath = "1.0.0/edgeGateways/{gateway}/firewall/rules"

// prepareRules assigns IDs to new rules of a firewall and completes their references. Versions are checked only if the
// request contains them.
func prepareRules(field string) func(*api.Request, map[string]any) error {
	return func(r *api.Request, body map[string]any) error {
		rules, _ := body[field].([]any)
		if err := documents.AtMost(body, field, maxEdgeRules); err != nil {
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

func prepareFirewallRule(r *api.Request, rule map[string]any) error {
	if store.Text(rule, "id") == "" {
		rule["id"] = r.Cloud.IDs.Next("firewallRule")
	}
	if err := checkRuleSizes(r.Cloud.Assume, rule); err != nil {
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
		rule["action"] = nil // the older field does not have REJECT
	}
	documents.Complete(rule, map[string]any{"enabled": true, "logging": false, "direction": "IN_OUT", "ipProtocol": "IPV4_IPV6"})
	version := 0
	if v, ok := rule["version"].(map[string]any); ok && v["version"] != nil {
		version = documents.Number(v["version"]) + 1
	}
	rule["version"] = map[string]any{"version": version}
	return completeReferences(r.Session, r.Cloud.Store, rule)
}

// checkRuleSizes refuses a rule that exceeds the limits of VMware's OpenAPI document.
func checkRuleSizes(a cloud.Assumptions, rule map[string]any) error {
	for _, field := range []string{"sourceFirewallGroups", "destinationFirewallGroups", "applicationPortProfiles"} {
		if err := documents.AtMost(rule, field, 128); err != nil {
			return err
		}
	}
	if n := len(store.Text(rule, "comments")); n > 2048 {
		return store.BadRequest("The length of the field comments is %d and must not exceed 2048.", n)
	}
	return documents.WithinSizes(a, rule)
}

// completeReferences completes the references of a rule with names, and refuses references to unknown objects.
func completeReferences(session *store.Session, st *store.Store, rule map[string]any) error {
	for field, path := range map[string]string{
		"sourceFirewallGroups":      GroupPath,
		"destinationFirewallGroups": GroupPath,
		"applicationPortProfiles":   gateways.ProfilePath,
	} {
		refs, _ := rule[field].([]any)
		for i, x := range refs {
			ref, err := gateways.DocumentReference(session, st, path, "FIREWALL_RULE_VIEW", store.RefID(map[string]any{field: x}, field))
			if err != nil {
				return err
			}
			refs[i] = ref
		}
	}
	return nil
}

const edgeRulesOperation = "/cloudapi/" + edgeRulesPath

func firewallRoutes(add api.AddRoute) {
	for operation, form := range map[string]ruleFormat{
		edgeRulesOperation: v1Format(),
		v2RulesOperation:   v2Format(),
	} {
		add("POST", operation, form.create, cloud.LatencyWrite)
		add("GET", operation+"/{rule}", form.get, cloud.LatencyCloudAPI)
		add("PUT", operation+"/{rule}", form.put, cloud.LatencyWrite)
		add("DELETE", operation+"/{rule}", api.With2(edgeRule, deleteEdgeRule), cloud.LatencyWrite)
	}
	add("GET", v2RulesOperation, api.With(gateways.OnGateway, getV2Rules), cloud.LatencyCloudAPI)
	add("PUT", v2RulesOperation, putV2Rules, cloud.LatencyWrite)
	add("DELETE", v2RulesOperation, edgeFirewall().Remove, cloud.LatencyWrite)
}

func edgeFirewall() *documents.Setting {
	return &documents.Setting{
		Path:    edgeRulesPath,
		Kind:    "edgeFirewall",
		Title:   "Firewall Rules",
		Scope:   gateways.OnGateway,
		Prepare: prepareRules("userDefinedRules"),
		Show:    showEdgeRules,
	}
}

// edgeRules returns the user-defined rules of a gateway's firewall.
func edgeRules(r *api.Request) ([]any, error) {
	p, err := gateways.OnGateway(r)
	if err != nil {
		return nil, err
	}
	body, _ := edgeFirewall().Now(r, p)
	rules, _ := body["userDefinedRules"].([]any)
	return slices.Clone(rules), nil
}

// edgeRule returns the user-defined rules of a gateway's firewall, and the index of the rule in the path.
func edgeRule(r *api.Request) (rules []any, at int, err error) {
	if rules, err = edgeRules(r); err != nil {
		return nil, 0, err
	}
	at, err = dfwRuleIndex(r, rules)
	return rules, at, err
}

// changeEdgeRules replaces the rules of a gateway. The caller has prepared the new rules; the others keep their
// versions.
func changeEdgeRules(r *api.Request, rules []any) (*api.Response, error) {
	x := edgeFirewall()
	x.Prepare = nil
	body := map[string]any{"userDefinedRules": rules}
	if err := documents.AtMost(body, "userDefinedRules", maxEdgeRules); err != nil {
		return nil, err
	}
	return x.Change(r, body)
}

const maxEdgeRules = 1000

// create inserts one rule at the position in the request, by default at the bottom. The other rules do not change. The
// response does not contain the ID of the rule: the owner of the task is the gateway.
func (f ruleFormat) create(r *api.Request) (*api.Response, error) {
	if since := r.Cloud.Assume.EdgeRuleCreateSince; r.Version < since {
		return nil, store.Refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
			"The method POST is not allowed here before API version %s.", since)
	}
	rules, err := edgeRules(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.Document(&rule); err != nil {
		return nil, err
	}
	at, err := edgeRulePosition(&r.Cloud.Assume, r.Version, rule, rules)
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

// edgeRulePosition returns the index at which a new rule is inserted.
func edgeRulePosition(assume *cloud.Assumptions, version string, rule map[string]any, rules []any) (int, error) {
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

// hasID returns a function that reports whether its argument is the rule with the given ID.
func hasID(id string) func(any) bool {
	return func(v any) bool {
		m, _ := v.(map[string]any)
		return store.Text(m, "id") == id
	}
}

func (f ruleFormat) get(r *api.Request) (*api.Response, error) {
	rules, at, err := edgeRule(r)
	if err != nil {
		return nil, err
	}
	return api.JSON(f.shown(r.Version, rules[at])), nil
}

func (f ruleFormat) put(r *api.Request) (*api.Response, error) {
	rules, at, err := edgeRule(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.Document(&rule); err != nil {
		return nil, err
	}
	rule["id"] = r.Vars["rule"]
	if err := f.prepare(r, rule); err != nil {
		return nil, err
	}
	rules[at] = rule
	return changeEdgeRules(r, rules)
}

// deleteEdgeRule removes one rule of a gateway's firewall.
func deleteEdgeRule(r *api.Request, rules []any, at int) (*api.Response, error) {
	return changeEdgeRules(r, slices.Delete(rules, at, at+1))
}

func showEdgeRules(r *api.Request, p documents.Scope, out map[string]any) {
	showRules(r.Cloud.IDs, p, out)
	v1Format().showAll(r.Version, out)
}

func showRules(source *ids.Source, p documents.Scope, out map[string]any) {
	if out["userDefinedRules"] == nil {
		out["userDefinedRules"] = []any{}
	}
	out["status"] = documents.StateRealized
	out["systemRules"] = []any{}
	out["defaultRules"] = []any{map[string]any{
		"id":                        source.Named("firewallRule", p.Parent),
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

// checkNoFirewallRules refuses to delete an object that a firewall rule refers to in one of the fields.
func checkNoFirewallRules(s *cloud.Cloud, kind string, d *store.Object, fields ...string) error {
	for _, x := range []struct{ path, field string }{{edgeRulesPath, "userDefinedRules"}, {dfwRulesPath, "values"}} {
		for _, doc := range s.Store.Documents[x.path] {
			rules, _ := doc.Body[x.field].([]any)
			for _, item := range rules {
				rule, _ := item.(map[string]any)
				for _, f := range fields {
					if slices.Contains(documents.Members(rule, f), store.Bare(d.ID())) {
						return documents.InUse(kind, store.Text(d.Body, "name"), "firewall rule "+store.Text(rule, "name"))
					}
				}
			}
		}
	}
	return nil
}
