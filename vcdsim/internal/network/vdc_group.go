// SPDX-License-Identifier: Apache-2.0

package network

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

const vdcGroupPath = "/cloudapi/1.0.0/vdcGroups"

func vdcGroupRoutes(add api.AddRoute) {
	add("GET", vdcGroupPath, listVDCGroups, cloud.LatencyCloudAPI)
	add("POST", vdcGroupPath, createVDCGroup, cloud.LatencyWrite)
	add("GET", vdcGroupPath+"/{id}", api.With2(ownVDCGroup, getVDCGroup), cloud.LatencyCloudAPI)
	add("PUT", vdcGroupPath+"/{id}", api.With2(ownVDCGroup, putVDCGroup), cloud.LatencyWrite)
	add("DELETE", vdcGroupPath+"/{id}", api.With2(ownVDCGroup, deleteVDCGroup), cloud.LatencyWrite)
	add("GET", "/cloudapi/1.0.0/vdcs/{id}/capabilities", getCapabilities, cloud.LatencyCloudAPI)
	add("GET", vdcGroupPath+"/{id}/capabilities", getCapabilities, cloud.LatencyCloudAPI)
	add("GET", vdcGroupPath+"/networkingCandidateVdcs", listCandidates, cloud.LatencyCloudAPI)
}

const scopeOfVDCs = "provider" // the network provider scope: all VDCs share one NSX manager

func groupMemberJSON(source *ids.Source, org *store.Org, v *store.VDC) map[string]any {
	return map[string]any{
		"vdcRef":               api.Ref("vdc", v.ID, v.Name),
		"siteRef":              api.Ref("site", source.Named("site", "local"), "local"),
		"orgRef":               api.Ref("org", org.ID, org.Name),
		"networkProviderScope": scopeOfVDCs,
		"faultDomainTag":       scopeOfVDCs,
		"status":               documents.StateRealized,
	}
}

func vdcGroupJSON(s *cloud.Cloud, org *store.Org, g *store.VDCGroup) map[string]any {
	members := []any{}
	for _, id := range g.VDCs {
		if _, v := s.Store.VDC(id); v != nil {
			members = append(members, groupMemberJSON(s.IDs, org, v))
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
		"networkPoolId":        store.URN("networkPool", vdcs.PoolID(s)),
		"status":               documents.Realization(s.Tasks, g.ID, g.Failed),
		"errorMessage":         nil,
	})
	return out
}

func listVDCGroups(r *api.Request) (*api.Response, error) {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		if r.Session.Provider() && r.Tenant() != r.Session.OrgID && o.ID != r.Tenant() {
			continue
		}
		for g := range o.VDCGroups {
			out = append(out, vdcGroupJSON(r.Cloud, o, &o.VDCGroups[g]))
		}
	}
	return r.Page(out)
}

func ownVDCGroup(r *api.Request) (*store.Org, *store.VDCGroup, error) {
	org, g := r.Cloud.Store.Group(store.Bare(r.Vars["id"]))
	if g == nil || !r.Session.Sees(org.ID) {
		return nil, nil, store.Forbidden("VDC_GROUP_VIEW", r.Vars["id"])
	}
	return org, g, nil
}

func getVDCGroup(r *api.Request, org *store.Org, g *store.VDCGroup) (*api.Response, error) {
	return api.JSON(vdcGroupJSON(r.Cloud, org, g)), nil
}

type vdcGroupBody struct {
	OrgID       string `json:"orgId"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Members     []struct {
		VDC gateways.JSONRefBody `json:"vdcRef"`
	} `json:"participatingOrgVdcs"`
	Firewall bool `json:"dfwEnabled"`
}

// readVDCGroup reads and checks a VDC group. A VDC can be in at most one group.
func readVDCGroup(r *api.Request, org *store.Org, old *store.VDCGroup) (*store.VDCGroup, error) {
	var body vdcGroupBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	g := &store.VDCGroup{
		Name:        body.Name,
		Description: body.Description,
		Firewall:    body.Firewall,
		Fields:      gateways.Rest(r.Content, []string{"localEgress", "universalNetworkingEnabled"}),
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
		v, err := groupCandidate(r.Cloud, org, old, store.Bare(m.VDC.ID))
		if err != nil {
			return nil, err
		}
		g.VDCs = append(g.VDCs, v.ID)
	}
	return g, nil
}

// groupCandidate returns a VDC of an organization, or an error if it is in another group.
func groupCandidate(s *cloud.Cloud, org *store.Org, group *store.VDCGroup, id string) (*store.VDC, error) {
	owner, v := s.Store.VDC(id)
	if v == nil || owner.ID != org.ID {
		return nil, store.Forbidden("VDC_VIEW", id)
	}
	if in := org.GroupOf(v.ID); in != nil && in != group {
		return nil, store.BadRequest("The VDC %q already participates in the data center group %q.", v.Name, in.Name)
	}
	return v, nil
}

func createVDCGroup(r *api.Request) (*api.Response, error) {
	var body vdcGroupBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	org := r.Cloud.Store.Org(store.Bare(body.OrgID))
	if org == nil {
		org = r.Cloud.Store.Org(r.Tenant())
	}
	if org == nil || !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("VDC_GROUP_CREATE", body.OrgID)
	}
	g, err := readVDCGroup(r, org, nil)
	if err != nil {
		return nil, err
	}
	g.ID = r.Cloud.IDs.Next("vdcGroup")
	org.VDCGroups = append(org.VDCGroups, *g)
	return r.Start(store.Work{Op: "create vdcGroup", Creates: true}, g.Entity(), []string{g.ID}), nil
}

func putVDCGroup(r *api.Request, org *store.Org, old *store.VDCGroup) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(old.ID); err != nil {
		return nil, err
	}
	g, err := readVDCGroup(r, org, old)
	if err != nil {
		return nil, err
	}
	moveToRemainingVDC(r.Cloud, org, g)
	*old = *g
	return r.Start(store.Work{Op: "update vdcGroup"}, g.Entity(), []string{g.ID}), nil
}

// moveToRemainingVDC moves the networks and edge gateways of a group from the VDCs that leave it to the first VDC that
// remains.
func moveToRemainingVDC(s *cloud.Cloud, org *store.Org, g *store.VDCGroup) {
	_, home := s.Store.VDC(g.VDCs[0])
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

func deleteVDCGroup(r *api.Request, org *store.Org, g *store.VDCGroup) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(g.ID); err != nil {
		return nil, err
	}
	if r.Query.Get("force") != "true" {
		if by := objectInGroup(r.Cloud, org, g); by != "" {
			return nil, documents.InUse("data center group", g.Name, by)
		}
	}
	return r.Start(store.Work{Op: "delete vdcGroup"}, g.Entity(), []string{g.ID}), nil
}

// objectInGroup returns the kind and name of an object that belongs to a group, or an empty string if no object does.
func objectInGroup(s *cloud.Cloud, org *store.Org, g *store.VDCGroup) string {
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
	for _, d := range s.Store.Documents[firewalls.GroupPath] {
		if d.Parent == g.ID {
			return "firewall group " + store.Text(d.Body, "name")
		}
	}
	return ""
}

// commitDeleteGroup removes a group. Its gateways and networks stay in the VDC that holds them.
func commitDeleteGroup(s *cloud.Cloud, t *store.Task) error {
	org, g := s.Store.Group(t.Owner.ID)
	if g == nil {
		return cloud.Gone("data center group", t.Owner.ID)
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
	documents.RemoveDocumentsOf(s, id)
	org.VDCGroups = slices.DeleteFunc(org.VDCGroups, func(x store.VDCGroup) bool { return x.ID == id })
	return nil
}

// listCandidates returns the VDCs that can join a group: those without a group, and the members of the group that the
// filter selects.
func listCandidates(r *api.Request) (*api.Response, error) {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		if o.ID != r.Tenant() && r.Tenant() != r.Session.OrgID {
			continue
		}
		for v := range o.VDCs {
			in := o.GroupOf(o.VDCs[v].ID)
			if in != nil && !inContextFilter(r, in.ID) {
				continue
			}
			m := groupMemberJSON(r.Cloud.IDs, o, &o.VDCs[v])
			m["id"] = store.URN("vdc", o.VDCs[v].ID)
			m["name"] = o.VDCs[v].Name
			delete(m, "vdcRef")
			delete(m, "status")
			out = append(out, m)
		}
	}
	return r.Page(out)
}

func inContextFilter(r *api.Request, id string) bool {
	return store.Bare(r.FilterValue("_context")) == id
}

func getCapabilities(r *api.Request) (*api.Response, error) {
	_, _, err := vdcs.OwnVDC(r)
	if _, _, asGroup := ownVDCGroup(r); err != nil && asGroup != nil {
		return nil, err
	}
	return r.Page([]any{
		map[string]any{"name": "networkProvider", "value": "NSX_T", "category": "Infra"},
		map[string]any{"name": "crossVdc", "value": false, "category": "VdcGroup"},
		map[string]any{"name": "vdcGroupTypes", "value": []string{"LOCAL"}, "category": "VdcGroup"},
	})
}
