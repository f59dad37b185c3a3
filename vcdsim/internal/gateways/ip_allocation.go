// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func allocationRoutes(add api.AddRoute) {
	add("POST", spacePath+"/{id}/allocate", api.With(ownSpace, allocateIP), cloud.LatencyWrite)
	add("GET", spacePath+"/{id}/allocations", api.With(ownSpace, listAllocations), cloud.LatencyCloudAPI)
	add("GET", spacePath+"/{id}/allocations/{allocation}", api.With2(ownAllocation, getAllocation), cloud.LatencyCloudAPI)
	add("PUT", spacePath+"/{id}/allocations/{allocation}", api.With2(ownAllocation, putAllocation), cloud.LatencyWrite)
	add("DELETE", spacePath+"/{id}/allocations/{allocation}", api.With2(ownAllocation, releaseIP), cloud.LatencyWrite)
	add("GET", spacePath+"/floatingIpSuggestions", suggestIPs, cloud.LatencyCloudAPI)
}

// An allocationRequest is a tenant's request for values of an IP Space.
type allocationRequest struct {
	Type         string `json:"type"`
	Quantity     int    `json:"quantity"`
	PrefixLength int    `json:"prefixLength"`
	Value        string `json:"value"`
	// OrgRef is the organization for which a provider allocates.
	OrgRef JSONRefBody `json:"orgRef"`
}

// freeValues returns the first free values that match a request, at most its quantity.
func freeValues(p *store.IPSpace, q allocationRequest) []string {
	var out []string
	forEachValue(p, q, func(value string) bool {
		taken := slices.ContainsFunc(p.Allocations,
			func(a store.IPAllocation) bool { return a.Type == q.Type && a.Value == value })
		if !taken && (q.Value == "" || q.Value == value) {
			out = append(out, value)
		}
		return len(out) < q.Quantity
	})
	return out
}

// forEachValue calls f with every value of the space that matches the request, until f returns false.
func forEachValue(p *store.IPSpace, q allocationRequest, f func(value string) bool) {
	if q.Type == store.IPPrefix {
		for _, x := range p.Prefixes {
			more := true
			if x.First.Bits() == q.PrefixLength {
				forEachPrefix(x, func(n netip.Prefix) bool { more = f(n.String()); return more })
			}
			if !more {
				return
			}
		}
		return
	}
	for _, r := range p.Ranges {
		for a := r.From; r.Contains(a); a = a.Next() {
			if !f(a.String()) {
				return
			}
		}
	}
}

// quota returns the maximum number of floating IPs, or of prefixes of a length, for an organization. A quota of -1 is
// unlimited.
func (sp IPSpaces) quota(p *store.IPSpace, orgID string, q allocationRequest) int {
	custom := sp.customQuotas(p.ID, orgID)
	if q.Type == store.FloatingIP {
		if custom["floatingIpQuota"] != nil {
			return documents.Number(custom["floatingIpQuota"])
		}
		return p.RangeQuota
	}
	list, _ := custom["ipPrefixQuotas"].([]any)
	for _, item := range list {
		if m, _ := item.(map[string]any); documents.Number(m["prefixLength"]) == q.PrefixLength {
			return documents.Number(m["quota"])
		}
	}
	for _, x := range p.Prefixes {
		if x.First.Bits() == q.PrefixLength {
			return x.Quota
		}
	}
	return -1
}

// chooseValues returns the values for a request of an organization. It returns an error if the quota or the free values
// do not suffice.
func (sp IPSpaces) chooseValues(p *store.IPSpace, orgID string, q allocationRequest) ([]string, error) {
	if q.Type == store.IPPrefix && q.Value != "" {
		prefix, err := netip.ParsePrefix(q.Value)
		if err != nil {
			return nil, store.BadRequest("The IP prefix %q is invalid.", q.Value)
		}
		q.PrefixLength = prefix.Bits()
	}
	if limit := sp.quota(p, orgID, q); limit >= 0 && countAllocated(p, orgID, q)+q.Quantity > limit {
		return nil, store.Refuse(http.StatusBadRequest, "QUOTA_EXCEEDED",
			"The quota of %d for %s in the IP space %q would be exceeded.", limit, q.Type, p.Name)
	}
	got := freeValues(p, q)
	switch {
	case len(got) == 0 && q.Value != "":
		return nil, store.BadRequest("%s is not available in the IP space %q: it is allocated already, or not part of it.",
			q.Value, p.Name)
	case len(got) < q.Quantity:
		return nil, store.BadRequest("The IP space %q does not have enough free values of type %s.", p.Name, q.Type)
	}
	return got, nil
}

// countAllocated returns the number of allocations of an organization that have the type, and for prefixes the length,
// of a request.
func countAllocated(p *store.IPSpace, orgID string, q allocationRequest) int {
	n := 0
	for _, a := range p.Allocations {
		if a.Type == q.Type && a.OrgID == orgID &&
			(q.Type == store.FloatingIP || strings.HasSuffix(a.Value, "/"+strconv.Itoa(q.PrefixLength))) {
			n++
		}
	}
	return n
}

// readAllocation reads and checks a request for either a specific value or a number of values.
func readAllocation(r *api.Request) (allocationRequest, error) {
	q := allocationRequest{Quantity: 1}
	if err := r.Document(&q); err != nil {
		return q, err
	}
	if q.Type != store.FloatingIP && q.Type != store.IPPrefix || q.Quantity < 1 || q.Value != "" && q.Quantity > 1 {
		return q, store.BadRequest("The allocation request is invalid.")
	}
	if q.Value != "" && r.Version < "37.2" {
		if r.Cloud.Assume.NewerFieldsRefused {
			return q, store.BadRequest("The field value is not known in API version %s.", r.Version)
		}
		q.Value = ""
	}
	return q, nil
}

func allocateIP(r *api.Request, p *store.IPSpace) (*api.Response, error) {
	q, err := readAllocation(r)
	if err != nil {
		return nil, err
	}
	orgID := spacesOf(r.Cloud).allocationOrg(r, p, q)
	if !spacesOf(r.Cloud).assignedTo(p, orgID) {
		return nil, store.BadRequest("The IP space %q is not available to the organization.", p.Name)
	}
	if p.Type == store.SpaceShared && !r.Session.Provider() {
		return nil, store.Forbidden("IP_SPACE_ALLOCATE", r.Vars["id"])
	}
	if _, err := spacesOf(r.Cloud).chooseValues(p, orgID, q); err != nil {
		return nil, err
	}
	body := map[string]any{"type": q.Type, "quantity": q.Quantity, "prefixLength": q.PrefixLength, "value": q.Value}
	return r.Start(store.Work{Op: "allocate ipSpace", Name: orgID, Body: body}, p.Entity(), nil), nil
}

// allocationOrg returns the ID of the organization for which a request allocates. If a provider does not specify one,
// it is the owner of a private space, or the only organization to which another space is available.
func (sp IPSpaces) allocationOrg(r *api.Request, p *store.IPSpace, q allocationRequest) string {
	tenant := r.Tenant()
	if r.Session.Provider() && q.OrgRef.ID != "" {
		return store.Bare(q.OrgRef.ID)
	}
	if tenant != r.Session.OrgID || !r.Session.Provider() || sp.assignedTo(p, tenant) {
		return tenant
	}
	if p.OrgID != "" {
		return p.OrgID
	}
	var assigned []string
	for _, o := range sp.cloud.Store.Model.Orgs {
		if sp.assignedTo(p, o.ID) {
			assigned = append(assigned, o.ID)
		}
	}
	if len(assigned) != 1 {
		return tenant
	}
	return assigned[0]
}

// commitAllocate allocates the values and writes them to the result of the task.
func commitAllocate(s *cloud.Cloud, t *store.Task) error {
	p := s.Store.Space(t.Owner.ID)
	if p == nil {
		return cloud.Gone("IP space", t.Owner.ID)
	}
	b := t.Work.Body
	q := allocationRequest{
		Type:         store.Text(b, "type"),
		Quantity:     documents.Number(b["quantity"]),
		PrefixLength: documents.Number(b["prefixLength"]),
		Value:        store.Text(b, "value"),
	}
	values, err := spacesOf(s).chooseValues(p, t.Work.Name, q)
	if err != nil {
		return err
	}
	result := []map[string]any{}
	for _, v := range values {
		a := store.IPAllocation{
			ID:      s.IDs.Next("ipSpaceIpAllocation"),
			Type:    q.Type,
			Value:   v,
			OrgID:   t.Work.Name,
			Created: s.Clock.Now(),
		}
		p.Allocations = append(p.Allocations, a)
		result = append(result, map[string]any{"id": store.URN("ipSpaceIpAllocation", a.ID), "value": v})
	}
	text, err := json.Marshal(result)
	t.Result = string(text)
	return err
}

// usage returns the usage state of an allocation, the gateway or network that uses it, and the categories of the
// services.
func (sp IPSpaces) usage(a *store.IPAllocation) (state string, by *store.Entity, categories []any) {
	if org := sp.cloud.Store.Org(a.OrgID); org != nil {
		for v := range org.VDCs {
			for g := range org.VDCs[v].EdgeGateways {
				if by, categories = sp.userOf(&org.VDCs[v].EdgeGateways[g], a); by != nil {
					return store.UsageUsed, by, categories
				}
			}
		}
	}
	if a.Manual {
		return store.UsageManual, nil, nil
	}
	return store.UsageFree, nil, nil
}

// userOf returns the gateway that uses an allocation, or the network behind the gateway that uses a prefix. It returns
// nil if the allocation is unused.
func (sp IPSpaces) userOf(g *store.EdgeGateway, a *store.IPAllocation) (by *store.Entity, categories []any) {
	if prefix, err := netip.ParsePrefix(a.Value); err == nil {
		return sp.networkWithPrefix(g, prefix), nil
	}
	for _, used := range EdgesOf(sp.cloud).UsedBy(g) {
		if used.Address.String() == a.Value {
			categories = append(categories, strings.ToUpper(used.Category))
		}
	}
	if len(categories) == 0 {
		return nil, nil
	}
	e := g.Entity()
	return &e, categories
}

func (sp IPSpaces) networkWithPrefix(g *store.EdgeGateway, prefix netip.Prefix) *store.Entity {
	_, vdc, _ := sp.cloud.Store.Gateway(g.ID)
	for _, n := range vdc.Networks {
		if n.Edge == g.ID && n.Gateway.Masked() == prefix.Masked() {
			return &store.Entity{Kind: "network", ID: n.ID, Name: n.Name}
		}
	}
	return nil
}

func allocationJSON(s *cloud.Cloud, a *store.IPAllocation) map[string]any {
	state, by, categories := spacesOf(s).usage(a)
	out := map[string]any{
		"id":              store.URN("ipSpaceIpAllocation", a.ID),
		"type":            a.Type,
		"value":           a.Value,
		"allocationDate":  a.Created.UTC().Format("2006-01-02T15:04:05.000Z"),
		"usageState":      state,
		"description":     a.Description,
		"usedByRef":       nil,
		"usageCategories": append([]any{}, categories...),
		"orgRef":          nil,
	}
	if org := s.Store.Org(a.OrgID); org != nil {
		out["orgRef"] = api.Ref("org", org.ID, org.Name)
	}
	if by != nil {
		out["usedByRef"] = api.Ref(by.Kind, by.ID, by.Name)
	}
	return out
}

func listAllocations(r *api.Request, p *store.IPSpace) (*api.Response, error) {
	if kind := r.FilterValue("type"); kind == "" && r.Cloud.Assume.AllocationsNeedType {
		return nil, store.BadRequest("The allocation type must be specified in the filter, such as type==FLOATING_IP.")
	}
	var out []any
	for i := range p.Allocations {
		if a := &p.Allocations[i]; r.Session.Sees(a.OrgID) {
			out = append(out, allocationJSON(r.Cloud, a))
		}
	}
	return r.Page(out)
}

// ownAllocation returns the allocation in the path and its IP Space.
func ownAllocation(r *api.Request) (*store.IPSpace, *store.IPAllocation, error) {
	p, err := ownSpace(r)
	if err != nil {
		return nil, nil, err
	}
	for i := range p.Allocations {
		if a := &p.Allocations[i]; a.ID == store.Bare(r.Vars["allocation"]) && r.Session.Sees(a.OrgID) {
			return p, a, nil
		}
	}
	return nil, nil, store.Forbidden("IP_SPACE_ALLOCATION_VIEW", r.Vars["allocation"])
}

func getAllocation(r *api.Request, _ *store.IPSpace, a *store.IPAllocation) (*api.Response, error) {
	return api.JSON(allocationJSON(r.Cloud, a)), nil
}

// putAllocation marks an allocation as used manually, or removes that mark.
func putAllocation(r *api.Request, p *store.IPSpace, a *store.IPAllocation) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(a.ID); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	if err := spacesOf(r.Cloud).checkUsageState(a, store.Text(body, "usageState")); err != nil {
		return nil, err
	}
	w := store.Work{Op: "update ipSpaceAllocation", Document: p.ID, Body: body}
	return r.Start(w, allocationEntity(r, a), []string{a.ID}), nil
}

// allocationEntity returns an allocation as an entity whose address is the path of the request.
func allocationEntity(r *api.Request, a *store.IPAllocation) store.Entity {
	e := a.Entity()
	e.Path = strings.TrimSuffix(r.URL.Path, "/")
	return e
}

// checkUsageState refuses a usage state that a client cannot set.
func (sp IPSpaces) checkUsageState(a *store.IPAllocation, wanted string) error {
	state, _, _ := sp.usage(a)
	switch {
	case wanted == store.UsageManual && state == store.UsageUsed:
		return store.BadRequest("%s is in use and cannot be marked as used manually.", a.Value)
	case wanted == store.UsageUsed && state != store.UsageUsed:
		return store.BadRequest("The usage state USED cannot be set.")
	case !slices.Contains([]string{store.UsageManual, store.UsageUsed, store.UsageFree}, wanted):
		return store.BadRequest("The usage state %q is invalid.", wanted)
	}
	return nil
}

func commitUsageState(s *cloud.Cloud, t *store.Task) error {
	if p := s.Store.Space(t.Work.Document); p != nil {
		for i := range p.Allocations {
			if a := &p.Allocations[i]; a.ID == t.Owner.ID {
				a.Manual = store.Text(t.Work.Body, "usageState") == store.UsageManual
				a.Description = store.Text(t.Work.Body, "description")
				return nil
			}
		}
	}
	return cloud.Gone("IP allocation", t.Owner.ID)
}

// releaseIP releases an unused allocation.
func releaseIP(r *api.Request, p *store.IPSpace, a *store.IPAllocation) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(a.ID); err != nil {
		return nil, err
	}
	if state, _, _ := spacesOf(r.Cloud).usage(a); state == store.UsageUsed || state == store.UsageManual &&
		r.Cloud.Assume.ManualUseBlocksRelease {
		return nil, store.Refuse(http.StatusBadRequest, "VALIDATION_ERROR",
			"%s cannot be released because it is in use (%s).", a.Value, state)
	}
	return r.Start(store.Work{Op: "delete ipSpaceAllocation", Document: p.ID}, allocationEntity(r, a), []string{a.ID}), nil
}

func commitRelease(s *cloud.Cloud, t *store.Task) error {
	p := s.Store.Space(t.Work.Document)
	if p == nil {
		return cloud.Gone("IP space", t.Work.Document)
	}
	p.Allocations = slices.DeleteFunc(p.Allocations, func(a store.IPAllocation) bool { return a.ID == t.Owner.ID })
	return nil
}

// suggestIPs lists, for each IP Space that a gateway can use, the unused floating IPs of its organization. For a
// gateway that uses IP blocks, it responds with 403. Clients detect such gateways by this status.
func suggestIPs(r *api.Request) (*api.Response, error) {
	id := r.FilterValue("gatewayId")
	org, _, g, err := EdgeByID(r.Session, r.Cloud.Store, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(g.Uplinks, EdgesOf(r.Cloud).usesSpaces) {
		return nil, store.Forbidden("IP_SPACE_VIEW", id)
	}
	family := r.FilterValue("ipType")
	var out []any
	for _, u := range g.Uplinks {
		for _, p := range spacesOf(r.Cloud).withUplinkTo(u.Network) {
			if family != "" && !slices.ContainsFunc(p.Ranges,
				func(x store.Range) bool { return x.From.Is4() == (family == "IPV4") }) {
				continue
			}
			out = append(out, map[string]any{
				"ipSpaceRef":   api.Ref("ipSpace", p.ID, p.Name),
				"unusedValues": spacesOf(r.Cloud).unusedFloatingIPs(p, org.ID),
			})
		}
	}
	return r.PageIgnoring(out, []string{"gatewayId", "ipType"})
}

// unusedFloatingIPs returns unused floating IPs of an organization in a space, at most maxSuggestions.
func (sp IPSpaces) unusedFloatingIPs(p *store.IPSpace, orgID string) []any {
	out := []any{}
	for i := range p.Allocations {
		a := &p.Allocations[i]
		if state, _, _ := sp.usage(a); a.Type == store.FloatingIP && a.OrgID == orgID && state == store.UsageFree &&
			len(out) < maxSuggestions {
			out = append(out, a.Value)
		}
	}
	return out
}

// maxSuggestions is the maximum number of suggested addresses per IP Space.
const maxSuggestions = 5
