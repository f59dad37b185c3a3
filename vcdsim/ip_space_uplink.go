// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const (
	spaceUplinkPath     = "/cloudapi/1.0.0/ipSpaceUplinks"
	spaceAssignmentPath = "1.0.0/ipSpaces/orgAssignments"
)

func spaceUplinkRoutes(add addRoute) {
	add("GET", spaceUplinkPath, listSpaceUplinks, latencyCloudAPI)
	add("POST", spaceUplinkPath, createSpaceUplink, latencyWrite)
	add("GET", spaceUplinkPath+"/{id}", with2(spaceUplink, getSpaceUplink), latencyCloudAPI)
	add("PUT", spaceUplinkPath+"/{id}", with2(spaceUplink, putSpaceUplink), latencyWrite)
	add("DELETE", spaceUplinkPath+"/{id}", with2(spaceUplink, deleteSpaceUplink), latencyWrite)
	add("GET", "/cloudapi/"+spaceAssignmentPath, listSpaceAssignments, latencyCloudAPI)
	add("GET", "/cloudapi/"+spaceAssignmentPath+"/{id}",
		func(r *request) (*response, error) { return oneOf(r, spaceAssignments(r), "id") }, latencyCloudAPI)
	add("PUT", "/cloudapi/"+spaceAssignmentPath+"/{id}", putSpaceAssignment, latencyWrite)
}

func spaceUplinkJSON(r *request, p *store.IPSpace, u store.SpaceUplink) map[string]any {
	out := map[string]any{"interfaces": []any{}}
	maps.Copy(out, u.Fields)
	maps.Copy(out, map[string]any{
		"id":                 store.URN("ipSpaceUplink", u.ID),
		"name":               u.Name,
		"description":        u.Description,
		"ipSpaceRef":         jsonRef("ipSpace", p.ID, p.Name),
		"ipSpaceType":        p.Type,
		"status":             r.cloud.tasks.realization(u.ID, false),
		"externalNetworkRef": nil,
	})
	r.newer("38.0", out, "interfaces")
	if e := r.cloud.store.External(u.Network); e != nil {
		out["externalNetworkRef"] = jsonRef("network", e.ID, e.Name)
	}
	return out
}

func listSpaceUplinks(r *request) (*response, error) {
	if err := r.byProvider("IP_SPACE_UPLINK_VIEW"); err != nil {
		return nil, err
	}
	var out []any
	for i := range r.cloud.store.Model.IPSpaces {
		p := &r.cloud.store.Model.IPSpaces[i]
		for _, u := range p.Uplinks {
			out = append(out, spaceUplinkJSON(r, p, u))
		}
	}
	return r.page(out)
}

// spaceUplink finds the uplink in the path; only the provider sees them.
func spaceUplink(r *request) (*store.IPSpace, *store.SpaceUplink, error) {
	if r.session.Provider() {
		for i := range r.cloud.store.Model.IPSpaces {
			p := &r.cloud.store.Model.IPSpaces[i]
			for u := range p.Uplinks {
				if p.Uplinks[u].ID == store.Bare(r.vars["id"]) {
					return p, &p.Uplinks[u], nil
				}
			}
		}
	}
	return nil, nil, store.Forbidden("IP_SPACE_UPLINK_VIEW", r.vars["id"])
}

func getSpaceUplink(r *request, p *store.IPSpace, u *store.SpaceUplink) (*response, error) {
	return jsonOK(spaceUplinkJSON(r, p, *u)), nil
}

type spaceUplinkBody struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Network     jsonRefBody `json:"externalNetworkRef"`
	Space       jsonRefBody `json:"ipSpaceRef"`
}

// spaceInterfaces are the interfaces of the router that an uplink is for, with their names.
func spaceInterfaces(r *request) map[string]any {
	fields := rest(r.body, []string{"interfaces"})
	list, _ := fields["interfaces"].([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			m["name"] = "uplink-1"
			m["interfaceType"] = "EXTERNAL"
		}
	}
	return fields
}

func createSpaceUplink(r *request) (*response, error) {
	if err := r.byProvider("IP_SPACE_UPLINK_CREATE"); err != nil {
		return nil, err
	}
	var body spaceUplinkBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	p := r.cloud.store.Space(store.Bare(body.Space.ID))
	e := r.cloud.store.External(store.Bare(body.Network.ID))
	if p == nil || e == nil {
		return nil, store.Forbidden("IP_SPACE_UPLINK_CREATE", body.Space.ID)
	}
	if !e.UsesSpaces {
		return nil, store.BadRequest("The external network %q does not use IP spaces.", e.Name)
	}
	if body.Name == "" || slices.Contains(spacesOf(r.cloud).of(e.ID), p) {
		return nil, store.DuplicateName(body.Name)
	}
	u := store.SpaceUplink{
		ID:          r.cloud.ids.Next("ipSpaceUplink"),
		Name:        body.Name,
		Description: body.Description,
		Network:     e.ID,
		Fields:      spaceInterfaces(r),
	}
	p.Uplinks = append(p.Uplinks, u)
	return r.start(store.Work{Op: "create ipSpaceUplink", Creates: true}, u.Entity(), []string{u.ID}), nil
}

func putSpaceUplink(r *request, _ *store.IPSpace, u *store.SpaceUplink) (*response, error) {
	if err := r.cloud.tasks.checkIdle(u.ID); err != nil {
		return nil, err
	}
	var body spaceUplinkBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	u.Name = body.Name
	u.Description = body.Description
	u.Fields = spaceInterfaces(r)
	return r.start(store.Work{Op: "update ipSpaceUplink"}, u.Entity(), []string{u.ID}), nil
}

// deleteSpaceUplink takes a space away from an external network, unless a gateway uses an address of it there.
func deleteSpaceUplink(r *request, p *store.IPSpace, u *store.SpaceUplink) (*response, error) {
	if err := r.cloud.tasks.checkIdle(u.ID); err != nil {
		return nil, err
	}
	for i := range p.Allocations {
		if state, _, _ := spacesOf(r.cloud).usage(&p.Allocations[i]); state == store.UsageUsed {
			return nil, inUse("IP space uplink", u.Name, "allocation "+p.Allocations[i].Value)
		}
	}
	return r.start(store.Work{Op: "delete ipSpaceUplink", Document: p.ID}, u.Entity(), []string{u.ID}), nil
}

func commitDeleteSpaceUplink(s *cloud, t *store.Task) error {
	p := s.store.Space(t.Work.Document)
	if p == nil {
		return gone("IP space", t.Work.Document)
	}
	p.Uplinks = slices.DeleteFunc(p.Uplinks, func(u store.SpaceUplink) bool { return u.ID == t.Owner.ID })
	return nil
}

// spaceAssignments are the organizations that may use each space: VCD assigns one when its first gateway reaches the
// space.
func spaceAssignments(r *request) []any {
	var out []any
	for i := range r.cloud.store.Model.IPSpaces {
		p := &r.cloud.store.Model.IPSpaces[i]
		for _, o := range visibleOrgs(r.session, r.cloud.store) {
			if spacesOf(r.cloud).assignedTo(p, o.ID) {
				out = append(out, spaceAssignmentJSON(r, p, o))
			}
		}
	}
	return out
}

func (sp ipSpaces) assignmentID(space, org string) string {
	return store.URN("ipSpaceOrgAssignment", sp.cloud.ids.Named("ipSpaceOrgAssignment", space+org))
}

func spaceAssignmentJSON(r *request, p *store.IPSpace, o *store.Org) map[string]any {
	prefixes := []any{}
	seen := map[int]bool{}
	for _, x := range p.Prefixes {
		if bits := x.First.Bits(); !seen[bits] {
			seen[bits] = true
			prefixes = append(prefixes, map[string]any{"prefixLength": bits, "quota": x.Quota})
		}
	}
	out := map[string]any{
		"id":            spacesOf(r.cloud).assignmentID(p.ID, o.ID),
		"ipSpaceRef":    jsonRef("ipSpace", p.ID, p.Name),
		"orgRef":        jsonRef("org", o.ID, o.Name),
		"ipSpaceType":   p.Type,
		"defaultQuotas": map[string]any{"floatingIpQuota": p.RangeQuota, "ipPrefixQuotas": prefixes},
		"customQuotas":  nil,
	}
	if custom := spacesOf(r.cloud).customQuotas(p.ID, o.ID); custom != nil {
		out["customQuotas"] = custom
	}
	return out
}

func (sp ipSpaces) customQuotas(space, org string) map[string]any {
	d := sp.cloud.store.Documents.Find(spaceAssignmentPath, sp.assignmentID(space, org))
	if d == nil {
		return nil
	}
	custom, _ := d.Body["customQuotas"].(map[string]any)
	return custom
}

func listSpaceAssignments(r *request) (*response, error) { return r.page(spaceAssignments(r)) }

// putSpaceAssignment sets quotas of an organization.
func putSpaceAssignment(r *request) (*response, error) {
	if err := r.byProvider("IP_SPACE_MANAGE"); err != nil {
		return nil, err
	}
	if _, err := oneOf(r, spaceAssignments(r), "id"); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	id := r.vars["id"]
	quotas := map[string]any{"id": id, "customQuotas": body["customQuotas"]}
	if d := r.cloud.store.Documents.Find(spaceAssignmentPath, id); d != nil {
		d.Body = quotas
	} else {
		r.cloud.store.Documents.Add(spaceAssignmentPath, "", quotas)
	}
	return r.done(store.Entity{Kind: "ipSpaceOrgAssignment", ID: store.Bare(id), Name: "assignment"}), nil
}
