// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// GroupPath is the path of firewall groups: IP sets and groups of VMs.
const GroupPath = "1.0.0/firewallGroups"

// Types of firewall groups.
const (
	groupIPSet   = "IP_SET"
	groupStatic  = "SECURITY_GROUP"
	groupDynamic = "VM_CRITERIA"
)

func groupCollection() *documents.Collection {
	return &documents.Collection{
		Path:     GroupPath,
		Kind:     "firewallGroup",
		Hides:    true,
		Right:    "FIREWALL_GROUP",
		Title:    "Firewall Group",
		Unique:   []string{"name", "typeValue"},
		Required: []string{"name"},
		Defaults: map[string]any{"description": ""},
		Fixed:    []string{"typeValue", "type"},
		Scope:    groupScope,
		Prepare:  prepareGroup,
		Free:     checkGroupUnused,
		Show:     showGroup,
	}
}

func groupRoutes(add api.AddRoute) {
	add("GET", "/cloudapi/"+GroupPath+"/summaries", listFirewallGroups, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/"+GroupPath+"/{id}/associatedVMs", listFirewallGroupVMs, cloud.LatencyCloudAPI)
}

// groupScope returns the owner of a firewall group, which is an edge gateway or a VDC group.
func groupScope(r *api.Request, body map[string]any) (documents.Scope, error) {
	id := store.RefID(body, "ownerRef")
	if id == "" {
		id = store.RefID(body, "edgeGatewayRef")
	}
	if org, group := r.Cloud.Store.Group(store.Bare(id)); group != nil && r.Session.Sees(org.ID) {
		return documents.Scope{OrgID: org.ID, Parent: group.ID}, nil
	}
	if strings.Contains(id, ":vdc:") {
		return documents.Scope{}, store.BadRequest("A firewall group belongs to an edge gateway or to a data center group.")
	}
	if _, _, g := r.Cloud.Store.Gateway(store.Bare(id)); g != nil && g.Group != "" && r.Cloud.Assume.GroupOwnsFirewallGroups {
		return documents.Scope{}, store.BadRequest(
			"The edge gateway %q belongs to a data center group, which owns its firewall groups.",
			g.Name)
	}
	return gateways.GatewayScope(r.Session, r.Cloud.Store, id)
}

func prepareGroup(r *api.Request, body map[string]any, old *store.Object) error {
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
	return checkGroupContent(r.Session, r.Cloud.Store, body)
}

// checkGroupContent checks the addresses and networks of a group.
func checkGroupContent(session *store.Session, st *store.Store, body map[string]any) error {
	for _, a := range stringList(body["ipAddresses"]) {
		if len(gateways.ParseAddresses(a)) == 0 {
			return store.BadRequest("The IP address %q is invalid.", a)
		}
	}
	for _, id := range documents.Members(body, "members") {
		if org, _, n := st.Network(id); n == nil || !session.Sees(org.ID) {
			return store.Forbidden("ORG_VDC_NETWORK_VIEW", id)
		}
	}
	return nil
}

// stringList returns the strings of a JSON list.
func stringList(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func showGroup(r *api.Request, d *store.Object, out map[string]any) {
	out["status"] = documents.Realization(r.Cloud.Tasks, store.Bare(d.ID()), d.Failed)
	out["networkProviderScope"] = nil
	if org := r.Cloud.Store.Org(d.OrgID); org != nil {
		out["orgRef"] = api.Ref("org", org.ID, org.Name)
	}
	out["edgeGatewayRef"] = nil
	out["ownerRef"] = nil
	if _, _, g := r.Cloud.Store.Gateway(d.Parent); g != nil {
		ref := api.Ref("gateway", g.ID, g.Name)
		out["edgeGatewayRef"] = ref
		out["ownerRef"] = ref
	}
	if _, g := r.Cloud.Store.Group(d.Parent); g != nil {
		out["ownerRef"] = api.Ref("vdcGroup", g.ID, g.Name)
	}
	refs := []any{}
	for _, id := range documents.Members(d.Body, "members") {
		if _, _, n := r.Cloud.Store.Network(id); n != nil {
			refs = append(refs, api.Ref("network", n.ID, n.Name))
		}
	}
	if out["members"] = refs; len(refs) == 0 {
		out["members"] = nil
	}
}

// checkGroupUnused refuses to delete a group that a load balancer pool or a firewall rule uses.
func checkGroupUnused(s *cloud.Cloud, d *store.Object) error {
	for _, p := range s.Store.Documents[documents.PoolPath] {
		if store.RefID(p.Body, "memberGroupRef") == d.ID() {
			return documents.InUse("firewall group", store.Text(d.Body, "name"), "load balancer pool "+store.Text(p.Body, "name"))
		}
	}
	return checkNoFirewallRules(s, "firewall group", d, "sourceFirewallGroups", "destinationFirewallGroups")
}

// listFirewallGroups lists the groups without their content. A _context filter selects the groups of one gateway or VDC
// group.
func listFirewallGroups(r *api.Request) (*api.Response, error) {
	c := groupCollection()
	context := r.FilterValue("_context")
	var out []any
	for _, d := range c.Scoped(r) {
		if context != "" && !strings.Contains(context, ":vdc:") && d.Parent != store.Bare(context) {
			continue
		}
		summary := c.Shown(r, d)
		for _, field := range []string{"ipAddresses", "members", "vmCriteria"} {
			delete(summary, field)
		}
		out = append(out, summary)
	}
	return r.Page(out)
}

// listFirewallGroupVMs lists the VMs of a group: those with a NIC on a member network, and those whose name matches the
// criteria.
func listFirewallGroupVMs(r *api.Request) (*api.Response, error) {
	d, err := groupCollection().FindScoped(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	nets := documents.Members(d.Body, "members")
	var out []any
	viewer := access.ViewerOf(r)
	for _, vm := range store.Sorted(r.Cloud.Store.VMs) {
		vapp := r.Cloud.Store.VApps[vm.VAppID]
		if !viewer.Sees(vapp) || vapp.OrgID != d.OrgID || !vmOnNetworks(vm, vapp, nets) && !matchesCriteria(d.Body, vm.Name) {
			continue
		}
		_, vdc := r.Cloud.Store.VDC(vapp.VDCID)
		org := r.Cloud.Store.Org(vapp.OrgID)
		if vdc == nil || org == nil {
			continue
		}
		out = append(out, map[string]any{
			"vmRef":   api.Ref("vm", vm.ID, vm.Name),
			"vappRef": api.Ref("vapp", vapp.ID, vapp.Name),
			"vdcRef":  api.Ref("vdc", vdc.ID, vdc.Name),
			"orgRef":  api.Ref("org", org.ID, org.Name),
		})
	}
	return r.Page(out)
}

// vmOnNetworks reports whether a VM has a NIC on one of the org VDC networks.
func vmOnNetworks(vm *store.VM, vapp *store.VApp, nets []string) bool {
	return slices.ContainsFunc(vm.NICs, func(nic store.NIC) bool {
		n := vapp.Network(nic.Network)
		return n != nil && slices.Contains(nets, n.Segment())
	})
}

// matchesCriteria reports whether the name of a VM matches a criterion of a dynamic group. All rules of a criterion
// must match. Rules on tags never match, as this package does not read the tags of VMs.
func matchesCriteria(body map[string]any, name string) bool {
	criteria, _ := body["vmCriteria"].([]any)
	return slices.ContainsFunc(criteria, func(c any) bool {
		m, _ := c.(map[string]any)
		rules, _ := m["rules"].([]any)
		return len(rules) > 0 && !slices.ContainsFunc(rules, func(x any) bool {
			rule, _ := x.(map[string]any)
			return store.Text(rule, "attributeType") != "VM_NAME" ||
				!matchesOperator(store.Text(rule, "operator"), name, store.Text(rule, "attributeValue"))
		})
	})
}

func matchesOperator(operator, have, want string) bool {
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

// SetAddresses returns the addresses that an IP set lists. A prefix contributes only its first address.
func SetAddresses(d *store.Object) []netip.Addr {
	var out []netip.Addr
	for _, a := range stringList(d.Body["ipAddresses"]) {
		out = append(out, gateways.ParseAddresses(a)...)
	}
	return out
}
