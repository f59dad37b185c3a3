// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const vdcGroupPath = "/cloudapi/1.0.0/vdcGroups"

func vdcGroupRoutes(add addRoute) {
	add("GET", vdcGroupPath, listVDCGroups, latencyCloudAPI)
	add("POST", vdcGroupPath, createVDCGroup, latencyWrite)
	add("GET", vdcGroupPath+"/{id}", with2(ownVDCGroup, getVDCGroup), latencyCloudAPI)
	add("PUT", vdcGroupPath+"/{id}", with2(ownVDCGroup, putVDCGroup), latencyWrite)
	add("DELETE", vdcGroupPath+"/{id}", with2(ownVDCGroup, deleteVDCGroup), latencyWrite)
	add("GET", "/cloudapi/1.0.0/vdcs/{id}/capabilities", getCapabilities, latencyCloudAPI)
	add("GET", vdcGroupPath+"/{id}/capabilities", getCapabilities, latencyCloudAPI)
	add("GET", vdcGroupPath+"/networkingCandidateVdcs", listCandidates, latencyCloudAPI)
}

const scopeOfVDCs = "provider" // network provider scope: all VDCs are on one NSX

func groupMemberJSON(source *ids.Source, org *store.Org, v *store.VDC) map[string]any {
	return map[string]any{
		"vdcRef":               jsonRef("vdc", v.ID, v.Name),
		"siteRef":              jsonRef("site", source.Named("site", "local"), "local"),
		"orgRef":               jsonRef("org", org.ID, org.Name),
		"networkProviderScope": scopeOfVDCs,
		"faultDomainTag":       scopeOfVDCs,
		"status":               stateRealized,
	}
}

func vdcGroupJSON(r *request, org *store.Org, g *store.VDCGroup) map[string]any {
	members := []any{}
	for _, id := range g.VDCs {
		if _, v := r.cloud.store.VDC(id); v != nil {
			members = append(members, groupMemberJSON(r.cloud.ids, org, v))
		}
	}
	out := map[string]any{
		"localEgress":                false,
		"universalNetworkingEnabled": false,
		"networkPoolUniversalId":     nil,
		"type":                       "LOCAL",
		"networkProviderType":        "NSX_T",
	}
	maps.Copy(out, g.Fields)
	maps.Copy(out, map[string]any{
		"id":                   store.URN("vdcGroup", g.ID),
		"orgId":                store.URN("org", org.ID),
		"name":                 g.Name,
		"description":          g.Description,
		"participatingOrgVdcs": members,
		"dfwEnabled":           g.Firewall,
		"networkPoolId":        store.URN("networkPool", poolID(r.cloud)),
		"status":               r.cloud.tasks.realization(g.ID, g.Failed),
		"errorMessage":         nil,
	})
	return out
}

func listVDCGroups(r *request) (*response, error) {
	var out []any
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		if r.session.Provider() && r.tenant() != r.session.OrgID && o.ID != r.tenant() {
			continue
		}
		for g := range o.VDCGroups {
			out = append(out, vdcGroupJSON(r, o, &o.VDCGroups[g]))
		}
	}
	return r.page(out)
}

func ownVDCGroup(r *request) (*store.Org, *store.VDCGroup, error) {
	org, g := r.cloud.store.Group(store.Bare(r.vars["id"]))
	if g == nil || !r.session.Sees(org.ID) {
		return nil, nil, store.Forbidden("VDC_GROUP_VIEW", r.vars["id"])
	}
	return org, g, nil
}

func getVDCGroup(r *request, org *store.Org, g *store.VDCGroup) (*response, error) {
	return jsonOK(vdcGroupJSON(r, org, g)), nil
}

type vdcGroupBody struct {
	OrgID       string `json:"orgId"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Members     []struct {
		VDC jsonRefBody `json:"vdcRef"`
	} `json:"participatingOrgVdcs"`
	Firewall bool `json:"dfwEnabled"`
}

// readVDCGroup reads and checks a VDC group; a VDC is in one group at most.
func readVDCGroup(r *request, org *store.Org, old *store.VDCGroup) (*store.VDCGroup, error) {
	var body vdcGroupBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	g := &store.VDCGroup{
		Name:        body.Name,
		Description: body.Description,
		Firewall:    body.Firewall,
		Fields:      rest(r.body, []string{"localEgress", "universalNetworkingEnabled"}),
	}
	if old != nil {
		g.ID = old.ID
		g.Firewall = old.Firewall
	}
	if g.Name == "" || len(body.Members) == 0 {
		return nil, store.BadRequest("A data center group needs a name and at least one VDC.")
	}
	if slices.ContainsFunc(org.VDCGroups, func(x store.VDCGroup) bool { return x.ID != g.ID && x.Name == g.Name }) {
		return nil, store.DuplicateName(g.Name)
	}
	for _, m := range body.Members {
		v, err := groupCandidate(r.cloud, org, old, store.Bare(m.VDC.ID))
		if err != nil {
			return nil, err
		}
		g.VDCs = append(g.VDCs, v.ID)
	}
	return g, nil
}

// groupCandidate finds a VDC of an organization that is in no other group.
func groupCandidate(s *cloud, org *store.Org, group *store.VDCGroup, id string) (*store.VDC, error) {
	owner, v := s.store.VDC(id)
	if v == nil || owner.ID != org.ID {
		return nil, store.Forbidden("VDC_VIEW", id)
	}
	if in := org.GroupOf(v.ID); in != nil && in != group {
		return nil, store.BadRequest("The VDC %q already participates in the data center group %q.", v.Name, in.Name)
	}
	return v, nil
}

func createVDCGroup(r *request) (*response, error) {
	var body vdcGroupBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	org := r.cloud.store.Org(store.Bare(body.OrgID))
	if org == nil {
		org = r.cloud.store.Org(r.tenant())
	}
	if org == nil || !r.session.Sees(org.ID) {
		return nil, store.Forbidden("VDC_GROUP_CREATE", body.OrgID)
	}
	g, err := readVDCGroup(r, org, nil)
	if err != nil {
		return nil, err
	}
	g.ID = r.cloud.ids.Next("vdcGroup")
	org.VDCGroups = append(org.VDCGroups, *g)
	return r.start(store.Work{Op: "create vdcGroup", Creates: true}, g.Entity(), []string{g.ID}), nil
}

func putVDCGroup(r *request, org *store.Org, old *store.VDCGroup) (*response, error) {
	if err := r.cloud.tasks.checkIdle(old.ID); err != nil {
		return nil, err
	}
	g, err := readVDCGroup(r, org, old)
	if err != nil {
		return nil, err
	}
	keepWithGroup(r.cloud, org, g)
	*old = *g
	return r.start(store.Work{Op: "update vdcGroup"}, g.Entity(), []string{g.ID}), nil
}

// keepWithGroup moves what belongs to a group from VDCs that leave it to one that stays.
func keepWithGroup(s *cloud, org *store.Org, g *store.VDCGroup) {
	_, home := s.store.VDC(g.VDCs[0])
	for v := range org.VDCs {
		from := &org.VDCs[v]
		if slices.Contains(g.VDCs, from.ID) {
			continue
		}
		for _, n := range from.Networks {
			if n.Group == g.ID {
				home.Networks = append(home.Networks, n)
			}
		}
		for _, e := range from.EdgeGateways {
			if e.Group == g.ID {
				home.EdgeGateways = append(home.EdgeGateways, e)
			}
		}
		from.Networks = slices.DeleteFunc(from.Networks, func(n store.Network) bool { return n.Group == g.ID })
		from.EdgeGateways = slices.DeleteFunc(from.EdgeGateways, func(e store.EdgeGateway) bool { return e.Group == g.ID })
	}
}

func deleteVDCGroup(r *request, org *store.Org, g *store.VDCGroup) (*response, error) {
	if err := r.cloud.tasks.checkIdle(g.ID); err != nil {
		return nil, err
	}
	if r.query.get("force") != "true" {
		if by := groupHolds(r.cloud, org, g); by != "" {
			return nil, inUse("data center group", g.Name, by)
		}
	}
	return r.start(store.Work{Op: "delete vdcGroup"}, g.Entity(), []string{g.ID}), nil
}

// groupHolds returns the name of something that belongs to a group, empty if nothing does.
func groupHolds(s *cloud, org *store.Org, g *store.VDCGroup) string {
	for v := range org.VDCs {
		for _, n := range org.VDCs[v].Networks {
			if n.Group == g.ID {
				return "network " + n.Name
			}
		}
		for _, e := range org.VDCs[v].EdgeGateways {
			if e.Group == g.ID {
				return "edge gateway " + e.Name
			}
		}
	}
	for _, d := range s.store.Documents[groupPath] {
		if d.Parent == g.ID {
			return "firewall group " + store.Text(d.Body, "name")
		}
	}
	return ""
}

// commitDeleteGroup removes a group; gateways and networks stay with the VDC that kept them.
func commitDeleteGroup(s *cloud, t *store.Task) error {
	org, g := s.store.Group(t.Owner.ID)
	if g == nil {
		return gone("data center group", t.Owner.ID)
	}
	id := g.ID
	for v := range org.VDCs {
		for n := range org.VDCs[v].Networks {
			if org.VDCs[v].Networks[n].Group == id {
				org.VDCs[v].Networks[n].Group = ""
			}
		}
		for e := range org.VDCs[v].EdgeGateways {
			if org.VDCs[v].EdgeGateways[e].Group == id {
				org.VDCs[v].EdgeGateways[e].Group = ""
			}
		}
	}
	removeDocumentsOf(s, id)
	org.VDCGroups = slices.DeleteFunc(org.VDCGroups, func(x store.VDCGroup) bool { return x.ID == id })
	return nil
}

// listCandidates are the VDCs that may be in a group with the one, or in the group, that the filter names.
func listCandidates(r *request) (*response, error) {
	var out []any
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		if o.ID != r.tenant() && r.tenant() != r.session.OrgID {
			continue
		}
		for v := range o.VDCs {
			in := o.GroupOf(o.VDCs[v].ID)
			if in != nil && !inContextFilter(r, in.ID) {
				continue
			}
			m := groupMemberJSON(r.cloud.ids, o, &o.VDCs[v])
			m["id"] = store.URN("vdc", o.VDCs[v].ID)
			m["name"] = o.VDCs[v].Name
			delete(m, "vdcRef")
			delete(m, "status")
			out = append(out, m)
		}
	}
	return r.page(out)
}

func inContextFilter(r *request, id string) bool { return store.Bare(r.filterValue("_context")) == id }
