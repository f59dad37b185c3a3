// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	dfwPath        = "1.0.0/vdcGroups/{group}/dfwPolicies"
	dfwDefaultPath = dfwPath + "/default"
	dfwRulesPath   = dfwPath + "/{policy}/rules"
)

// vdcGroupScope returns the scope of the VDC group in the path.
func vdcGroupScope(r *api.Request) (documents.Scope, error) {
	org, g := r.Cloud.Store.Group(store.Bare(r.Vars["group"]))
	if g == nil || !r.Session.Sees(org.ID) {
		return documents.Scope{}, store.Forbidden("VDC_GROUP_VIEW", r.Vars["group"])
	}
	return documents.Scope{OrgID: org.ID, Parent: g.ID, Locks: []string{g.ID}}, nil
}

// dfwSettings returns the settings of the distributed firewall of a VDC group: whether it is enabled, its only policy,
// and the rules of that policy. The rules are the last element.
func dfwSettings() []*documents.Setting {
	return []*documents.Setting{
		{
			Path:    dfwPath,
			Kind:    "dfwPolicies",
			Title:   "Distributed Firewall",
			Scope:   vdcGroupScope,
			Prepare: prepareDFW,
			Show:    showDFW,
		},
		{
			Path:  dfwDefaultPath,
			Kind:  "dfwPolicy",
			Title: "Distributed Firewall Policy",
			Scope: vdcGroupScope,
			Show: func(r *api.Request, p documents.Scope, out map[string]any) {
				dfwPolicyJSON(r.Cloud.Store, r.Cloud.IDs, p, out)
			},
			Initial: gateways.Always(map[string]any{"enabled": true}),
		},
		{
			Path:    dfwRulesPath,
			Kind:    "dfwRules",
			Title:   "Distributed Firewall Rules",
			Scope:   vdcGroupScope,
			Prepare: prepareDFWRules,
			Show:    showDFWRules,
		},
	}
}

func dfwRoutes(add api.AddRoute) {
	one := dfwRulesPath + "/{rule}"
	add("GET", "/cloudapi/"+one, getDFWRule, cloud.LatencyCloudAPI)
	add("PUT", "/cloudapi/"+one, putDFWRule, cloud.LatencyWrite)
	add("DELETE", "/cloudapi/"+one, deleteDFWRule, cloud.LatencyWrite)
}

// prepareDFW enables or disables the firewall. It refuses to disable the firewall while the default policy is enabled.
func prepareDFW(r *api.Request, body map[string]any) error {
	_, g := r.Cloud.Store.Group(store.Bare(r.Vars["group"]))
	on, _ := body["enabled"].(bool)
	if !on && g.Firewall && dfwPolicyOn(r.Cloud.Store, g.ID) {
		return store.BadRequest("The distributed firewall cannot be disabled while its default policy is enabled.")
	}
	g.Firewall = on
	return nil
}

// dfwPolicyOn reports whether the default policy of a group is enabled.
func dfwPolicyOn(st *store.Store, group string) bool {
	for _, d := range st.Documents[dfwDefaultPath] {
		if d.Parent == group {
			return documents.Enabled(d.Body)
		}
	}
	return true
}

func showDFW(r *api.Request, p documents.Scope, out map[string]any) {
	_, g := r.Cloud.Store.Group(p.Parent)
	clear(out)
	out["enabled"] = g.Firewall
	out["defaultPolicy"] = nil
	if g.Firewall {
		policy := map[string]any{"version": map[string]any{"version": 0}}
		dfwPolicyJSON(r.Cloud.Store, r.Cloud.IDs, p, policy)
		out["defaultPolicy"] = policy
	}
}

func dfwPolicyJSON(st *store.Store, source *ids.Source, p documents.Scope, out map[string]any) {
	out["id"] = dfwPolicyID(source, p.Parent)
	out["name"] = "Default"
	out["description"] = ""
	out["enabled"] = dfwPolicyOn(st, p.Parent)
}

func dfwPolicyID(source *ids.Source, group string) string { return source.Named("dfwPolicy", group) }

// checkDFWPolicy returns an error unless the path refers to the default policy.
func checkDFWPolicy(r *api.Request) error {
	if id := r.Vars["policy"]; id != "default" && id != dfwPolicyID(r.Cloud.IDs, store.Bare(r.Vars["group"])) {
		return store.Forbidden("DFW_POLICY_VIEW", id)
	}
	return nil
}

func prepareDFWRules(r *api.Request, body map[string]any) error {
	if err := checkDFWPolicy(r); err != nil {
		return err
	}
	return prepareRules("values")(r, body)
}

func showDFWRules(r *api.Request, p documents.Scope, out map[string]any) {
	if out["values"] == nil {
		out["values"] = []any{defaultDFWRule(r.Cloud.Store, r.Cloud.IDs, p.Parent)}
	}
	delete(out, "version")
}

// defaultDFWRule returns the initial rule of each policy.
func defaultDFWRule(st *store.Store, source *ids.Source, group string) map[string]any {
	name := group
	if _, g := st.Group(group); g != nil {
		name = g.Name
	}
	return map[string]any{
		"id":                        source.Named("dfwRule", group),
		"name":                      "Default_VdcGroup_" + name,
		"description":               "",
		"comments":                  "",
		"action":                    "ALLOW",
		"actionValue":               "ALLOW",
		"enabled":                   true,
		"logging":                   false,
		"direction":                 "IN_OUT",
		"ipProtocol":                "IPV4_IPV6",
		"sourceFirewallGroups":      nil,
		"destinationFirewallGroups": nil,
		"applicationPortProfiles":   nil,
		"networkContextProfiles":    nil,
		"version":                   map[string]any{"version": 0},
	}
}

// dfwRules returns the rules of the group in the path, and the setting that contains them.
func dfwRules(r *api.Request) (*documents.Setting, []any, error) {
	all := dfwSettings()
	x := all[len(all)-1]
	p, err := x.Scope(r)
	if err == nil {
		err = checkDFWPolicy(r)
	}
	if err != nil {
		return nil, nil, err
	}
	body, _ := x.Now(r, p)
	x.Show(r, p, body)
	values, _ := body["values"].([]any)
	return x, values, nil
}

// dfwRule returns the setting and the rules of the policy, and the index of the rule in the path.
func dfwRule(r *api.Request) (x *documents.Setting, values []any, at int, err error) {
	if x, values, err = dfwRules(r); err != nil {
		return nil, nil, 0, err
	}
	at, err = dfwRuleIndex(r, values)
	x.Prepare = nil // only one rule changes; the others keep their versions
	return x, values, at, err
}

// dfwRuleIndex returns the index of the rule in the path among the rules of a distributed or edge firewall.
func dfwRuleIndex(r *api.Request, rules []any) (int, error) {
	i := slices.IndexFunc(rules, func(v any) bool {
		m, _ := v.(map[string]any)
		return store.Text(m, "id") == r.Vars["rule"]
	})
	if i < 0 {
		return i, store.Forbidden("DFW_RULE_VIEW", r.Vars["rule"])
	}
	return i, nil
}

func getDFWRule(r *api.Request) (*api.Response, error) {
	_, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	return api.JSON(values[at]), nil
}

func putDFWRule(r *api.Request) (*api.Response, error) {
	x, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.Document(&rule); err != nil {
		return nil, err
	}
	rule["id"] = r.Vars["rule"]
	if err := prepareFirewallRule(r, rule); err != nil {
		return nil, err
	}
	values = slices.Clone(values)
	values[at] = rule
	return x.Change(r, map[string]any{"values": values})
}

func deleteDFWRule(r *api.Request) (*api.Response, error) {
	x, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	return x.Change(r, map[string]any{"values": slices.Delete(slices.Clone(values), at, at+1)})
}
