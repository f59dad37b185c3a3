// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"
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

func spaceUplinkJSON(r *request, p *IPSpace, u SpaceUplink) map[string]any {
	out := map[string]any{"interfaces": []any{}}
	maps.Copy(out, u.Fields)
	maps.Copy(out, map[string]any{
		"id":                 URN("ipSpaceUplink", u.ID),
		"name":               u.Name,
		"description":        u.Description,
		"ipSpaceRef":         jsonRef("ipSpace", p.ID, p.Name),
		"ipSpaceType":        p.Type,
		"status":             r.sim.tasks.realization(u.ID, false),
		"externalNetworkRef": nil,
	})
	r.newer("38.0", out, "interfaces")
	if e := r.sim.store.external(u.Network); e != nil {
		out["externalNetworkRef"] = jsonRef("network", e.ID, e.Name)
	}
	return out
}

func listSpaceUplinks(r *request) (*response, error) {
	if err := r.byProvider("IP_SPACE_UPLINK_VIEW"); err != nil {
		return nil, err
	}
	var out []any
	for i := range r.sim.store.Model.IPSpaces {
		p := &r.sim.store.Model.IPSpaces[i]
		for _, u := range p.Uplinks {
			out = append(out, spaceUplinkJSON(r, p, u))
		}
	}
	return r.page(out)
}

// spaceUplink finds the uplink in the path; only the provider sees them.
func spaceUplink(r *request) (*IPSpace, *SpaceUplink, error) {
	if r.session.provider() {
		for i := range r.sim.store.Model.IPSpaces {
			p := &r.sim.store.Model.IPSpaces[i]
			for u := range p.Uplinks {
				if p.Uplinks[u].ID == bare(r.vars["id"]) {
					return p, &p.Uplinks[u], nil
				}
			}
		}
	}
	return nil, nil, forbidden("IP_SPACE_UPLINK_VIEW", r.vars["id"])
}

func getSpaceUplink(r *request, p *IPSpace, u *SpaceUplink) (*response, error) {
	return jsonOK(spaceUplinkJSON(r, p, *u)), nil
}

type spaceUplinkBody struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Network     jsonRefBody `json:"externalNetworkRef"`
	Space       jsonRefBody `json:"ipSpaceRef"`
}

func (u *SpaceUplink) entity() Entity { return Entity{"ipSpaceUplink", u.ID, u.Name} }

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
	p := r.sim.store.space(bare(body.Space.ID))
	e := r.sim.store.external(bare(body.Network.ID))
	if p == nil || e == nil {
		return nil, forbidden("IP_SPACE_UPLINK_CREATE", body.Space.ID)
	}
	if !e.UsesSpaces {
		return nil, badRequest("The external network %q does not use IP spaces.", e.Name)
	}
	if body.Name == "" || slices.Contains(r.sim.spaces.of(e.ID), p) {
		return nil, duplicateName(body.Name)
	}
	u := SpaceUplink{
		ID:          r.sim.ids.next("ipSpaceUplink"),
		Name:        body.Name,
		Description: body.Description,
		Network:     e.ID,
		Fields:      spaceInterfaces(r),
	}
	p.Uplinks = append(p.Uplinks, u)
	return r.start(Work{Op: "create ipSpaceUplink", Creates: true}, u.entity(), []string{u.ID}), nil
}

func putSpaceUplink(r *request, _ *IPSpace, u *SpaceUplink) (*response, error) {
	if err := r.sim.tasks.checkIdle(u.ID); err != nil {
		return nil, err
	}
	var body spaceUplinkBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	u.Name = body.Name
	u.Description = body.Description
	u.Fields = spaceInterfaces(r)
	return r.start(Work{Op: "update ipSpaceUplink"}, u.entity(), []string{u.ID}), nil
}

// deleteSpaceUplink takes a space away from an external network, unless a gateway uses an address of it there.
func deleteSpaceUplink(r *request, p *IPSpace, u *SpaceUplink) (*response, error) {
	if err := r.sim.tasks.checkIdle(u.ID); err != nil {
		return nil, err
	}
	for i := range p.Allocations {
		if state, _, _ := r.sim.spaces.usage(&p.Allocations[i]); state == UsageUsed {
			return nil, inUse("IP space uplink", u.Name, "allocation "+p.Allocations[i].Value)
		}
	}
	return r.start(Work{Op: "delete ipSpaceUplink", Document: p.ID}, u.entity(), []string{u.ID}), nil
}

func commitDeleteSpaceUplink(s *Simulator, t *Task) error {
	p := s.store.space(t.Work.Document)
	if p == nil {
		return gone("IP space", t.Work.Document)
	}
	p.Uplinks = slices.DeleteFunc(p.Uplinks, func(u SpaceUplink) bool { return u.ID == t.Owner.ID })
	return nil
}

// spaceAssignments are the organizations that may use each space: VCD assigns one when its first gateway reaches the
// space.
func spaceAssignments(r *request) []any {
	var out []any
	for i := range r.sim.store.Model.IPSpaces {
		p := &r.sim.store.Model.IPSpaces[i]
		for _, o := range visibleOrgs(r) {
			if r.sim.spaces.assignedTo(p, o.ID) {
				out = append(out, spaceAssignmentJSON(r, p, o))
			}
		}
	}
	return out
}

func (sp *ipSpaces) assignmentID(space, org string) string {
	return URN("ipSpaceOrgAssignment", sp.sim.ids.named("ipSpaceOrgAssignment", space+org))
}

func spaceAssignmentJSON(r *request, p *IPSpace, o *Org) map[string]any {
	prefixes := []any{}
	seen := map[int]bool{}
	for _, x := range p.Prefixes {
		if bits := x.First.Bits(); !seen[bits] {
			seen[bits] = true
			prefixes = append(prefixes, map[string]any{"prefixLength": bits, "quota": x.Quota})
		}
	}
	out := map[string]any{
		"id":            r.sim.spaces.assignmentID(p.ID, o.ID),
		"ipSpaceRef":    jsonRef("ipSpace", p.ID, p.Name),
		"orgRef":        jsonRef("org", o.ID, o.Name),
		"ipSpaceType":   p.Type,
		"defaultQuotas": map[string]any{"floatingIpQuota": p.RangeQuota, "ipPrefixQuotas": prefixes},
		"customQuotas":  nil,
	}
	if custom := r.sim.spaces.customQuotas(p.ID, o.ID); custom != nil {
		out["customQuotas"] = custom
	}
	return out
}

func (sp *ipSpaces) customQuotas(space, org string) map[string]any {
	d := sp.sim.store.Documents.find(spaceAssignmentPath, sp.assignmentID(space, org))
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
	if d := r.sim.store.Documents.find(spaceAssignmentPath, id); d != nil {
		d.Body = quotas
	} else {
		r.sim.store.Documents.add(spaceAssignmentPath, "", quotas)
	}
	return r.done(Entity{"ipSpaceOrgAssignment", bare(id), "assignment"}), nil
}
