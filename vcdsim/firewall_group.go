// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const groupPath = "1.0.0/firewallGroups"

// Kinds of firewall groups.
const (
	groupIPSet   = "IP_SET"
	groupStatic  = "SECURITY_GROUP"
	groupDynamic = "VM_CRITERIA"
)

func groupCollection() *collection {
	return &collection{
		path:     groupPath,
		kind:     "firewallGroup",
		hides:    true,
		right:    "FIREWALL_GROUP",
		title:    "Firewall Group",
		unique:   []string{"name", "typeValue"},
		required: []string{"name"},
		defaults: map[string]any{"description": ""},
		fixed:    []string{"typeValue", "type"},
		scope:    groupScope,
		prepare:  prepareGroup,
		free:     freeGroup,
		show:     showGroup,
	}
}

func groupRoutes(add addRoute) {
	add("GET", "/cloudapi/"+groupPath+"/summaries", listFirewallGroups, latencyCloudAPI)
	add("GET", "/cloudapi/"+groupPath+"/{id}/associatedVMs", listFirewallGroupVMs, latencyCloudAPI)
}

// groupScope: a group belongs to an edge gateway or to a VDC group.
func groupScope(r *request, body map[string]any) (scope, error) {
	id := store.RefID(body, "ownerRef")
	if id == "" {
		id = store.RefID(body, "edgeGatewayRef")
	}
	if org, group := r.cloud.store.Group(store.Bare(id)); group != nil && r.session.Sees(org.ID) {
		return scope{org.ID, group.ID, nil}, nil
	}
	if strings.Contains(id, ":vdc:") {
		return scope{}, store.BadRequest("A firewall group belongs to an edge gateway or to a data center group.")
	}
	if _, _, g := r.cloud.store.Gateway(store.Bare(id)); g != nil && g.Group != "" && r.cloud.assume.GroupOwnsFirewallGroups {
		return scope{}, store.BadRequest(
			"The edge gateway %q belongs to a data center group, which owns its firewall groups.",
			g.Name)
	}
	return gatewayScope(r.session, r.cloud.store, id)
}

func prepareGroup(r *request, body map[string]any, old *store.Object) error {
	if old != nil {
		body["ownerRef"] = old.Body["ownerRef"]
		body["edgeGatewayRef"] = old.Body["edgeGatewayRef"]
	}
	kind := store.Text(body, "typeValue")
	if kind == "" || kind == "STATIC_MEMBERS" {
		kind = store.Text(body, "type")
	}
	if !slices.Contains([]string{groupIPSet, groupStatic, groupDynamic}, kind) {
		return store.BadRequest("The firewall group type %q is invalid.", kind)
	}
	body["typeValue"] = kind
	if body["type"] = kind; kind == groupDynamic {
		body["type"] = nil
	}
	return firewallGroupContent(r.session, r.cloud.store, body)
}

// firewallGroupContent checks the addresses and networks of a group.
func firewallGroupContent(session *store.Session, st *store.Store, body map[string]any) error {
	for _, a := range strs(body["ipAddresses"]) {
		if len(parseAddresses(a)) == 0 {
			return store.BadRequest("The IP address %q is invalid.", a)
		}
	}
	for _, id := range members(body, "members") {
		if org, _, n := st.Network(id); n == nil || !session.Sees(org.ID) {
			return store.Forbidden("ORG_VDC_NETWORK_VIEW", id)
		}
	}
	return nil
}

// strs reads a list of texts.
func strs(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func showGroup(r *request, d *store.Object, out map[string]any) {
	out["status"] = r.cloud.tasks.realization(store.Bare(d.ID()), d.Failed)
	out["networkProviderScope"] = nil
	if org := r.cloud.store.Org(d.OrgID); org != nil {
		out["orgRef"] = jsonRef("org", org.ID, org.Name)
	}
	out["edgeGatewayRef"] = nil
	out["ownerRef"] = nil
	if _, _, g := r.cloud.store.Gateway(d.Parent); g != nil {
		ref := jsonRef("gateway", g.ID, g.Name)
		out["edgeGatewayRef"] = ref
		out["ownerRef"] = ref
	}
	if _, g := r.cloud.store.Group(d.Parent); g != nil {
		out["ownerRef"] = jsonRef("vdcGroup", g.ID, g.Name)
	}
	refs := []any{}
	for _, id := range members(d.Body, "members") {
		if _, _, n := r.cloud.store.Network(id); n != nil {
			refs = append(refs, jsonRef("network", n.ID, n.Name))
		}
	}
	if out["members"] = refs; len(refs) == 0 {
		out["members"] = nil
	}
}

// freeGroup refuses to delete what a pool or a rule uses.
func freeGroup(r *request, d *store.Object) error {
	for _, p := range r.cloud.store.Documents[poolPath] {
		if store.RefID(p.Body, "memberGroupRef") == d.ID() {
			return inUse("firewall group", store.Text(d.Body, "name"), "load balancer pool "+store.Text(p.Body, "name"))
		}
	}
	return freeOfFirewallRules(r.cloud, "firewall group", d, "sourceFirewallGroups", "destinationFirewallGroups")
}

// listFirewallGroups lists the groups without what is in them; _context narrows it to a gateway or VDC group.
func listFirewallGroups(r *request) (*response, error) {
	c := groupCollection()
	context := r.filterValue("_context")
	var out []any
	for _, d := range c.scoped(r) {
		if context != "" && !strings.Contains(context, ":vdc:") && d.Parent != store.Bare(context) {
			continue
		}
		summary := c.shown(r, d)
		for _, field := range []string{"ipAddresses", "members", "vmCriteria"} {
			delete(summary, field)
		}
		out = append(out, summary)
	}
	return r.page(out)
}

// listFirewallGroupVMs are the VMs with a NIC on a member of the group, or that its criteria choose by their name.
func listFirewallGroupVMs(r *request) (*response, error) {
	d, err := groupCollection().findScoped(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	nets := members(d.Body, "members")
	var out []any
	viewer := viewerOf(r)
	for _, vm := range store.Sorted(r.cloud.store.VMs) {
		vapp := r.cloud.store.VApps[vm.VAppID]
		if !viewer.sees(vapp) || vapp.OrgID != d.OrgID || !vmOnNetworks(vm, vapp, nets) && !chosen(d.Body, vm.Name) {
			continue
		}
		_, vdc := r.cloud.store.VDC(vapp.VDCID)
		org := r.cloud.store.Org(vapp.OrgID)
		if vdc == nil || org == nil {
			continue
		}
		out = append(out, map[string]any{
			"vmRef":   jsonRef("vm", vm.ID, vm.Name),
			"vappRef": jsonRef("vapp", vapp.ID, vapp.Name),
			"vdcRef":  jsonRef("vdc", vdc.ID, vdc.Name),
			"orgRef":  jsonRef("org", org.ID, org.Name),
		})
	}
	return r.page(out)
}

// vmOnNetworks reports whether a VM has a NIC on one of some org VDC networks.
func vmOnNetworks(vm *store.VM, vapp *store.VApp, nets []string) bool {
	return slices.ContainsFunc(vm.NICs, func(nic store.NIC) bool {
		n := vapp.Network(nic.Network)
		return n != nil && slices.Contains(nets, n.Segment())
	})
}

// chosen reports whether the criteria of a dynamic group choose a VM: all rules of one criterion must hold. VMs here
// have no tags.
func chosen(body map[string]any, name string) bool {
	criteria, _ := body["vmCriteria"].([]any)
	return slices.ContainsFunc(criteria, func(c any) bool {
		m, _ := c.(map[string]any)
		rules, _ := m["rules"].([]any)
		return len(rules) > 0 && !slices.ContainsFunc(rules, func(x any) bool {
			rule, _ := x.(map[string]any)
			return store.Text(rule, "attributeType") != "VM_NAME" ||
				!compares(store.Text(rule, "operator"), name, store.Text(rule, "attributeValue"))
		})
	})
}

func compares(operator, have, want string) bool {
	switch operator {
	case "EQUALS":
		return have == want
	case "CONTAINS":
		return strings.Contains(have, want)
	case "STARTS_WITH":
		return strings.HasPrefix(have, want)
	case "ENDS_WITH":
		return strings.HasSuffix(have, want)
	}
	return false
}

// setAddresses are the addresses an IP set lists one by one; prefixes count as their first.
func setAddresses(d *store.Object) []netip.Addr {
	var out []netip.Addr
	for _, a := range strs(d.Body["ipAddresses"]) {
		out = append(out, parseAddresses(a)...)
	}
	return out
}
