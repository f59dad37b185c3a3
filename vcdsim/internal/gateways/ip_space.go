// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const spacePath = "/cloudapi/1.0.0/ipSpaces"

func spaceRoutes(add api.AddRoute) {
	add("GET", spacePath+"/summaries", listSpaces, cloud.LatencyCloudAPI)
	add("POST", spacePath, createSpace, cloud.LatencyWrite)
	add("GET", spacePath+"/{id}", api.With(ownSpace, getSpace), cloud.LatencyCloudAPI)
	add("PUT", spacePath+"/{id}", api.With(writableSpace, putSpace), cloud.LatencyWrite)
	add("DELETE", spacePath+"/{id}", api.With(writableSpace, deleteSpace), cloud.LatencyWrite)
	allocationRoutes(add)
	spaceUplinkRoutes(add)
}

func seesSpace(r *api.Request, p *store.IPSpace) bool {
	return r.Session.Provider() || spacesOf(r.Cloud).assignedTo(p, r.Session.OrgID)
}

// allocatedInSpace counts the allocations of a type whose value satisfies accept.
func allocatedInSpace(p *store.IPSpace, kind string, accept func(value string) bool) int {
	n := 0
	for _, a := range p.Allocations {
		if a.Type == kind && accept(a.Value) {
			n++
		}
	}
	return n
}

func percentage(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) * 100 / float64(whole)
}

func spaceJSON(r *api.Request, p *store.IPSpace, summary bool) map[string]any {
	out := map[string]any{
		"id":          store.URN("ipSpace", p.ID),
		"name":        p.Name,
		"description": p.Description,
		"type":        p.Type,
		"orgRef":      nil,
		"status":      documents.Realization(r.Cloud.Tasks, p.ID, false),
		"utilization": spacesOf(r.Cloud).utilization(p),
	}
	if org := r.Cloud.Store.Org(p.OrgID); org != nil {
		out["orgRef"] = api.Ref("org", org.ID, org.Name)
	}
	if summary {
		return out
	}
	ranges := []any{}
	for _, x := range p.Ranges {
		used := allocatedInSpace(p, store.FloatingIP, func(v string) bool { return InRanges([]store.Range{x}, ParseAddresses(v)[0]) })
		ranges = append(ranges, map[string]any{
			"id":                    r.Cloud.IDs.Named("ipSpaceRange", p.ID+x.From.String()),
			"startIpAddress":        x.From.String(),
			"endIpAddress":          x.To.String(),
			"totalIpCount":          fmt.Sprint(x.Size()),
			"allocatedIpCount":      fmt.Sprint(used),
			"allocatedIpPercentage": percentage(used, x.Size()),
		})
	}
	internal := []any{}
	for _, x := range p.Internal {
		internal = append(internal, x.String())
	}
	maps.Copy(out, map[string]any{
		"ipSpaceRanges":             map[string]any{"ipRanges": ranges, "defaultFloatingIpQuota": p.RangeQuota},
		"ipSpacePrefixes":           prefixesJSON(r.Cloud.IDs, p),
		"ipSpaceInternalScope":      internal,
		"ipSpaceExternalScope":      nil,
		"routeAdvertisementEnabled": false,
	})
	if p.External.IsValid() {
		out["ipSpaceExternalScope"] = p.External.String()
	}
	maps.Copy(out, p.Fields)
	r.Newer("38.0", out, "defaultGatewayServiceConfig")
	return out
}

// prefixesJSON lists the prefixes of a space, grouped by length.
func prefixesJSON(source *ids.Source, p *store.IPSpace) []any {
	out := []any{}
	at := map[int]map[string]any{}
	for _, x := range p.Prefixes {
		bits := x.First.Bits()
		used := allocatedInSpace(p, store.IPPrefix, func(value string) bool { return containsPrefix(x, value) })
		sequence := map[string]any{
			"id":                        source.Named("ipSpacePrefix", p.ID+x.First.String()),
			"startingPrefixIpAddress":   x.First.Addr().String(),
			"prefixLength":              bits,
			"totalPrefixCount":          x.Count,
			"allocatedPrefixCount":      used,
			"allocatedPrefixPercentage": percentage(used, x.Count),
		}
		if group := at[bits]; group != nil {
			sequences, _ := group["ipPrefixSequence"].([]any)
			group["ipPrefixSequence"] = append(sequences, sequence)
			continue
		}
		at[bits] = map[string]any{"ipPrefixSequence": []any{sequence}, "defaultQuotaForPrefixLength": x.Quota}
		out = append(out, at[bits])
	}
	return out
}

func (sp IPSpaces) utilization(p *store.IPSpace) map[string]any {
	all := func(string) bool { return true }
	prefixes := 0
	lengths := []any{}
	for _, x := range p.Prefixes {
		prefixes += x.Count
		lengths = append(lengths,
			map[string]any{
				"prefixLength":   x.First.Bits(),
				"totalCount":     x.Count,
				"allocatedCount": allocatedInSpace(p, store.IPPrefix, func(value string) bool { return containsPrefix(x, value) }),
			})
	}
	used := map[string]int{}
	for i := range p.Allocations {
		if state, _, _ := sp.usage(&p.Allocations[i]); state != store.UsageFree {
			used[p.Allocations[i].Type]++
		}
	}
	counts := func(total int, kind string) map[string]any {
		n := allocatedInSpace(p, kind, all)
		return map[string]any{
			"totalCount":          fmt.Sprint(total),
			"allocatedCount":      fmt.Sprint(n),
			"usedCount":           fmt.Sprint(used[kind]),
			"unusedCount":         fmt.Sprint(n - used[kind]),
			"allocatedPercentage": percentage(n, total),
			"usedPercentage":      percentage(used[kind], total),
		}
	}
	byPrefix := counts(prefixes, store.IPPrefix)
	byPrefix["prefixLengthUtilizations"] = lengths
	return map[string]any{"floatingIPs": counts(Count(p.Ranges), store.FloatingIP), "ipPrefixes": byPrefix}
}

func listSpaces(r *api.Request) (*api.Response, error) {
	var out []any
	for i := range r.Cloud.Store.Model.IPSpaces {
		if p := &r.Cloud.Store.Model.IPSpaces[i]; seesSpace(r, p) {
			out = append(out, spaceJSON(r, p, true))
		}
	}
	return r.Page(out)
}

func getSpace(r *api.Request, p *store.IPSpace) (*api.Response, error) {
	return api.JSON(spaceJSON(r, p, false)), nil
}

func createSpace(r *api.Request) (*api.Response, error) {
	p, err := readSpace(r, nil)
	if err != nil {
		return nil, err
	}
	if p.OrgID == "" || !r.Session.Sees(p.OrgID) {
		if err := r.ByProvider("IP_SPACE_CREATE"); err != nil {
			return nil, err
		}
	}
	p.ID = r.Cloud.IDs.Next("ipSpace")
	r.Cloud.Store.Model.IPSpaces = append(r.Cloud.Store.Model.IPSpaces, *p)
	return r.Start(store.Work{Op: "create ipSpace", Creates: true}, p.Entity(), []string{p.ID}), nil
}

// writableSpace returns the IP Space in the path, or an error if the caller cannot change it or a task uses it.
func writableSpace(r *api.Request) (*store.IPSpace, error) {
	p, err := ownSpace(r)
	if err != nil {
		return nil, err
	}
	if p.OrgID == "" {
		if err := r.ByProvider("IP_SPACE_MANAGE"); err != nil {
			return nil, err
		}
	}
	return p, r.Cloud.Tasks.CheckIdle(p.ID)
}

func putSpace(r *api.Request, old *store.IPSpace) (*api.Response, error) {
	p, err := readSpace(r, old)
	if err != nil {
		return nil, err
	}
	*old = *p
	return r.Start(store.Work{Op: "update ipSpace"}, p.Entity(), []string{p.ID}), nil
}

func deleteSpace(r *api.Request, p *store.IPSpace) (*api.Response, error) {
	if len(p.Allocations) > 0 {
		return nil, documents.InUse("IP space", p.Name, "allocation "+p.Allocations[0].Value)
	}
	if len(p.Uplinks) > 0 {
		return nil, documents.InUse("IP space", p.Name, "uplink "+p.Uplinks[0].Name)
	}
	return r.Start(store.Work{Op: "delete ipSpace"}, p.Entity(), []string{p.ID}), nil
}

func commitDeleteSpace(s *cloud.Cloud, t *store.Task) error {
	m := &s.Store.Model
	m.IPSpaces = slices.DeleteFunc(m.IPSpaces, func(p store.IPSpace) bool { return p.ID == t.Owner.ID })
	return nil
}
