// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	dfwPath        = "1.0.0/vdcGroups/{group}/dfwPolicies"
	dfwDefaultPath = dfwPath + "/default"
	dfwRulesPath   = dfwPath + "/{policy}/rules"
)

func onGroup(r *request) (scope, error) {
	org, g := r.cloud.store.Group(store.Bare(r.vars["group"]))
	if g == nil || !r.session.Sees(org.ID) {
		return scope{}, store.Forbidden("VDC_GROUP_VIEW", r.vars["group"])
	}
	return scope{org.ID, g.ID, []string{g.ID}}, nil
}

// dfwSettings are the distributed firewall of VDC groups: whether it is on, its one policy, and the rules of that.
func dfwSettings() []*setting {
	return []*setting{
		{
			path:    dfwPath,
			kind:    "dfwPolicies",
			title:   "Distributed Firewall",
			scope:   onGroup,
			prepare: prepareDFW,
			show:    showDFW,
		},
		{
			path:  dfwDefaultPath,
			kind:  "dfwPolicy",
			title: "Distributed Firewall Policy",
			scope: onGroup,
			show: func(r *request, p scope, out map[string]any) {
				dfwPolicyJSON(r.cloud.store, r.cloud.ids, p, out)
			},
			initial: always(map[string]any{"enabled": true}),
		},
		{
			path:    dfwRulesPath,
			kind:    "dfwRules",
			title:   "Distributed Firewall Rules",
			scope:   onGroup,
			prepare: prepareDFWRules,
			show:    showDFWRules,
		},
	}
}

func dfwRoutes(add addRoute) {
	one := dfwRulesPath + "/{rule}"
	add("GET", "/cloudapi/"+one, getDFWRule, latencyCloudAPI)
	add("PUT", "/cloudapi/"+one, putDFWRule, latencyWrite)
	add("DELETE", "/cloudapi/"+one, deleteDFWRule, latencyWrite)
}

// prepareDFW switches the firewall; while its policy is on it cannot be switched off.
func prepareDFW(r *request, body map[string]any) error {
	_, g := r.cloud.store.Group(store.Bare(r.vars["group"]))
	on, _ := body["enabled"].(bool)
	if !on && g.Firewall && dfwPolicyOn(r.cloud.store, g.ID) {
		return store.BadRequest("The distributed firewall cannot be disabled while its default policy is enabled.")
	}
	g.Firewall = on
	return nil
}

// dfwPolicyOn reports whether the default policy of a group is enabled.
func dfwPolicyOn(st *store.Store, group string) bool {
	for _, d := range st.Documents[dfwDefaultPath] {
		if d.Parent == group {
			return enabled(d.Body)
		}
	}
	return true
}

func showDFW(r *request, p scope, out map[string]any) {
	_, g := r.cloud.store.Group(p.parent)
	clear(out)
	out["enabled"] = g.Firewall
	out["defaultPolicy"] = nil
	if g.Firewall {
		policy := map[string]any{"version": map[string]any{"version": 0}}
		dfwPolicyJSON(r.cloud.store, r.cloud.ids, p, policy)
		out["defaultPolicy"] = policy
	}
}

func dfwPolicyJSON(st *store.Store, source *ids.Source, p scope, out map[string]any) {
	out["id"] = dfwPolicyID(source, p.parent)
	out["name"] = "Default"
	out["description"] = ""
	out["enabled"] = dfwPolicyOn(st, p.parent)
}

func dfwPolicyID(source *ids.Source, group string) string { return source.Named("dfwPolicy", group) }

func knownDFWPolicy(r *request) error {
	if id := r.vars["policy"]; id != "default" && id != dfwPolicyID(r.cloud.ids, store.Bare(r.vars["group"])) {
		return store.Forbidden("DFW_POLICY_VIEW", id)
	}
	return nil
}

func prepareDFWRules(r *request, body map[string]any) error {
	if err := knownDFWPolicy(r); err != nil {
		return err
	}
	return prepareRules("values")(r, body)
}

func showDFWRules(r *request, p scope, out map[string]any) {
	if out["values"] == nil {
		out["values"] = []any{defaultDFWRule(r.cloud.store, r.cloud.ids, p.parent)}
	}
	delete(out, "version")
}

// defaultDFWRule is the rule every policy begins with.
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

// dfwRules are the rules of the group in the path, with the setting they are in.
func dfwRules(r *request) (*setting, []any, error) {
	all := dfwSettings()
	x := all[len(all)-1]
	p, err := x.scope(r)
	if err == nil {
		err = knownDFWPolicy(r)
	}
	if err != nil {
		return nil, nil, err
	}
	body, _ := x.now(r, p)
	x.show(r, p, body)
	values, _ := body["values"].([]any)
	return x, values, nil
}

// dfwRule finds the rule in the path among its policy's.
func dfwRule(r *request) (x *setting, values []any, at int, err error) {
	if x, values, err = dfwRules(r); err != nil {
		return nil, nil, 0, err
	}
	at, err = dfwRuleIndex(r, values)
	x.prepare = nil // one rule changes; the others keep their versions
	return x, values, at, err
}

// dfwRuleIndex finds the rule in the path among rules of any firewall.
func dfwRuleIndex(r *request, rules []any) (int, error) {
	i := slices.IndexFunc(rules, func(v any) bool {
		m, _ := v.(map[string]any)
		return store.Text(m, "id") == r.vars["rule"]
	})
	if i < 0 {
		return i, store.Forbidden("DFW_RULE_VIEW", r.vars["rule"])
	}
	return i, nil
}

func getDFWRule(r *request) (*response, error) {
	_, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(values[at]), nil
}

func putDFWRule(r *request) (*response, error) {
	x, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	rule := map[string]any{}
	if err := r.document(&rule); err != nil {
		return nil, err
	}
	rule["id"] = r.vars["rule"]
	if err := prepareFirewallRule(r, rule); err != nil {
		return nil, err
	}
	values = slices.Clone(values)
	values[at] = rule
	return x.change(r, map[string]any{"values": values})
}

func deleteDFWRule(r *request) (*response, error) {
	x, values, at, err := dfwRule(r)
	if err != nil {
		return nil, err
	}
	return x.change(r, map[string]any{"values": slices.Delete(slices.Clone(values), at, at+1)})
}
