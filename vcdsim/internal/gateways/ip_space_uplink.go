// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	spaceUplinkPath     = "/cloudapi/1.0.0/ipSpaceUplinks"
	spaceAssignmentPath = "1.0.0/ipSpaces/orgAssignments"
)

func spaceUplinkRoutes(add api.AddRoute) {
	add("GET", spaceUplinkPath, listSpaceUplinks, cloud.LatencyCloudAPI)
	add("POST", spaceUplinkPath, createSpaceUplink, cloud.LatencyWrite)
	add("GET", spaceUplinkPath+"/{id}", api.With2(spaceUplink, getSpaceUplink), cloud.LatencyCloudAPI)
	add("PUT", spaceUplinkPath+"/{id}", api.With2(spaceUplink, putSpaceUplink), cloud.LatencyWrite)
	add("DELETE", spaceUplinkPath+"/{id}", api.With2(spaceUplink, deleteSpaceUplink), cloud.LatencyWrite)
	add("GET", "/cloudapi/"+spaceAssignmentPath, listSpaceAssignments, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/"+spaceAssignmentPath+"/{id}",
		func(r *api.Request) (*api.Response, error) { return access.OneOf(r, spaceAssignments(r), "id") }, cloud.LatencyCloudAPI)
	add("PUT", "/cloudapi/"+spaceAssignmentPath+"/{id}", putSpaceAssignment, cloud.LatencyWrite)
}

func spaceUplinkJSON(r *api.Request, p *store.IPSpace, u store.SpaceUplink) map[string]any {
	out := map[string]any{"interfaces": []any{}}
	maps.Copy(out, u.Fields)
	maps.Copy(out, map[string]any{
		"id":                 store.URN("ipSpaceUplink", u.ID),
		"name":               u.Name,
		"description":        u.Description,
		"ipSpaceRef":         api.Ref("ipSpace", p.ID, p.Name),
		"ipSpaceType":        p.Type,
		"status":             documents.Realization(r.Cloud.Tasks, u.ID, false),
		"externalNetworkRef": nil,
	})
	r.Newer("38.0", out, "interfaces")
	if e := r.Cloud.Store.External(u.Network); e != nil {
		out["externalNetworkRef"] = api.Ref("network", e.ID, e.Name)
	}
	return out
}

func listSpaceUplinks(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("IP_SPACE_UPLINK_VIEW"); err != nil {
		return nil, err
	}
	var out []any
	for i := range r.Cloud.Store.Model.IPSpaces {
		p := &r.Cloud.Store.Model.IPSpaces[i]
		for _, u := range p.Uplinks {
			out = append(out, spaceUplinkJSON(r, p, u))
		}
	}
	return r.Page(out)
}

// spaceUplink returns the uplink in the path and its IP Space. Only a provider can see uplinks.
func spaceUplink(r *api.Request) (*store.IPSpace, *store.SpaceUplink, error) {
	if r.Session.Provider() {
		for i := range r.Cloud.Store.Model.IPSpaces {
			p := &r.Cloud.Store.Model.IPSpaces[i]
			for u := range p.Uplinks {
				if p.Uplinks[u].ID == store.Bare(r.Vars["id"]) {
					return p, &p.Uplinks[u], nil
				}
			}
		}
	}
	return nil, nil, store.Forbidden("IP_SPACE_UPLINK_VIEW", r.Vars["id"])
}

func getSpaceUplink(r *api.Request, p *store.IPSpace, u *store.SpaceUplink) (*api.Response, error) {
	return api.JSON(spaceUplinkJSON(r, p, *u)), nil
}

type spaceUplinkBody struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Network     JSONRefBody `json:"externalNetworkRef"`
	Space       JSONRefBody `json:"ipSpaceRef"`
}

// spaceInterfaces returns the router interfaces of an uplink, completed with names and types.
func spaceInterfaces(r *api.Request) map[string]any {
	fields := Rest(r.Content, []string{"interfaces"})
	list, _ := fields["interfaces"].([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			m["name"] = "uplink-1"
			m["interfaceType"] = "EXTERNAL"
		}
	}
	return fields
}

func createSpaceUplink(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("IP_SPACE_UPLINK_CREATE"); err != nil {
		return nil, err
	}
	var body spaceUplinkBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	p := r.Cloud.Store.Space(store.Bare(body.Space.ID))
	e := r.Cloud.Store.External(store.Bare(body.Network.ID))
	if p == nil || e == nil {
		return nil, store.Forbidden("IP_SPACE_UPLINK_CREATE", body.Space.ID)
	}
	if !e.UsesSpaces {
		return nil, store.BadRequest("The external network %q does not use IP spaces.", e.Name)
	}
	if body.Name == "" || slices.Contains(spacesOf(r.Cloud).withUplinkTo(e.ID), p) {
		return nil, store.DuplicateName(body.Name)
	}
	u := store.SpaceUplink{
		ID:          r.Cloud.IDs.Next("ipSpaceUplink"),
		Name:        body.Name,
		Description: body.Description,
		Network:     e.ID,
		Fields:      spaceInterfaces(r),
	}
	p.Uplinks = append(p.Uplinks, u)
	return r.Start(store.Work{Op: "create ipSpaceUplink", Creates: true}, u.Entity(), []string{u.ID}), nil
}

func putSpaceUplink(r *api.Request, p *store.IPSpace, u *store.SpaceUplink) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(u.ID); err != nil {
		return nil, err
	}
	var body spaceUplinkBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	if space := body.Space.ID; space != "" && store.Bare(space) != p.ID {
		return nil, store.BadRequest("The IP space of the uplink %q cannot be changed.", u.Name)
	}
	if network := body.Network.ID; network != "" && store.Bare(network) != u.Network {
		return nil, store.BadRequest("The external network of the uplink %q cannot be changed.", u.Name)
	}
	u.Name = body.Name
	u.Description = body.Description
	u.Fields = spaceInterfaces(r)
	return r.Start(store.Work{Op: "update ipSpaceUplink"}, u.Entity(), []string{u.ID}), nil
}

// deleteSpaceUplink removes the uplink of a space to an external network. It refuses if an allocation of the space is
// in use.
func deleteSpaceUplink(r *api.Request, p *store.IPSpace, u *store.SpaceUplink) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(u.ID); err != nil {
		return nil, err
	}
	for i := range p.Allocations {
		if state, _, _ := spacesOf(r.Cloud).usage(&p.Allocations[i]); state == store.UsageUsed {
			return nil, documents.InUse("IP space uplink", u.Name, "allocation "+p.Allocations[i].Value)
		}
	}
	return r.Start(store.Work{Op: "delete ipSpaceUplink", Document: p.ID}, u.Entity(), []string{u.ID}), nil
}

func commitDeleteSpaceUplink(s *cloud.Cloud, t *store.Task) error {
	p := s.Store.Space(t.Work.Document)
	if p == nil {
		return cloud.Gone("IP space", t.Work.Document)
	}
	p.Uplinks = slices.DeleteFunc(p.Uplinks, func(u store.SpaceUplink) bool { return u.ID == t.Owner.ID })
	return nil
}

// spaceAssignments returns the assignments of spaces to organizations. VCD assigns an organization once its first
// gateway can use the space.
func spaceAssignments(r *api.Request) []any {
	var out []any
	for i := range r.Cloud.Store.Model.IPSpaces {
		p := &r.Cloud.Store.Model.IPSpaces[i]
		for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
			if spacesOf(r.Cloud).assignedTo(p, o.ID) {
				out = append(out, spaceAssignmentJSON(r.Cloud, p, o))
			}
		}
	}
	return out
}

func (sp IPSpaces) assignmentID(space, org string) string {
	return store.URN("ipSpaceOrgAssignment", sp.cloud.IDs.Named("ipSpaceOrgAssignment", space+org))
}

func spaceAssignmentJSON(s *cloud.Cloud, p *store.IPSpace, o *store.Org) map[string]any {
	prefixes := []any{}
	seen := map[int]bool{}
	for _, x := range p.Prefixes {
		if bits := x.First.Bits(); !seen[bits] {
			seen[bits] = true
			prefixes = append(prefixes, map[string]any{"prefixLength": bits, "quota": x.Quota})
		}
	}
	out := map[string]any{
		"id":            spacesOf(s).assignmentID(p.ID, o.ID),
		"ipSpaceRef":    api.Ref("ipSpace", p.ID, p.Name),
		"orgRef":        api.Ref("org", o.ID, o.Name),
		"ipSpaceType":   p.Type,
		"defaultQuotas": map[string]any{"floatingIpQuota": p.RangeQuota, "ipPrefixQuotas": prefixes},
		"customQuotas":  nil,
	}
	if custom := spacesOf(s).customQuotas(p.ID, o.ID); custom != nil {
		out["customQuotas"] = custom
	}
	return out
}

func (sp IPSpaces) customQuotas(space, org string) map[string]any {
	d := sp.cloud.Store.Documents.Find(spaceAssignmentPath, sp.assignmentID(space, org))
	if d == nil {
		return nil
	}
	custom, _ := d.Body["customQuotas"].(map[string]any)
	return custom
}

func listSpaceAssignments(r *api.Request) (*api.Response, error) { return r.Page(spaceAssignments(r)) }

// putSpaceAssignment sets the custom quotas of an organization.
func putSpaceAssignment(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("IP_SPACE_MANAGE"); err != nil {
		return nil, err
	}
	if _, err := access.OneOf(r, spaceAssignments(r), "id"); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	id := r.Vars["id"]
	quotas := map[string]any{"id": id, "customQuotas": body["customQuotas"]}
	if d := r.Cloud.Store.Documents.Find(spaceAssignmentPath, id); d != nil {
		d.Body = quotas
	} else {
		r.Cloud.Store.Documents.Add(spaceAssignmentPath, "", quotas)
	}
	return r.Done(store.Entity{Kind: "ipSpaceOrgAssignment", ID: store.Bare(id), Name: "assignment"}), nil
}
