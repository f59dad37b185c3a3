// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

const externalPath = "/cloudapi/1.0.0/externalNetworks"

func externalRoutes(add api.AddRoute) {
	add("GET", externalPath, listExternal, cloud.LatencyCloudAPI)
	add("POST", externalPath, createExternal, cloud.LatencyWrite)
	add("GET", externalPath+"/{id}", api.With(ownExternal, getExternal), cloud.LatencyCloudAPI)
	add("PUT", externalPath+"/{id}", api.With(ownExternal, putExternal), cloud.LatencyWrite)
	add("DELETE", externalPath+"/{id}", api.With(ownExternal, deleteExternal), cloud.LatencyWrite)
}

type externalBody struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Subnets     struct {
		Values []struct {
			Gateway      string     `json:"gateway"`
			PrefixLength int        `json:"prefixLength"`
			IPRanges     JSONRanges `json:"ipRanges"`
			Enabled      *bool      `json:"enabled"`
			DNS1         string     `json:"dnsServer1"`
			DNS2         string     `json:"dnsServer2"`
			DNSSuffix    string     `json:"dnsSuffix"`
		} `json:"values"`
	} `json:"subnets"`
	Backings struct {
		Values []struct {
			ID        string `json:"backingId"`
			Type      string `json:"backingType"`
			TypeValue string `json:"backingTypeValue"`
		} `json:"values"`
	} `json:"networkBackings"`
	UsingSpaces  bool        `json:"usingIpSpace"`
	DedicatedOrg JSONRefBody `json:"dedicatedOrg"`
}

// readExternal reads and checks an external network. The network replaces old, which is nil for a new network.
func readExternal(r *api.Request, old *store.ExternalNetwork) (*store.ExternalNetwork, error) {
	var body externalBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	e := &store.ExternalNetwork{
		Name:        body.Name,
		Description: body.Description,
		UsesSpaces:  body.UsingSpaces,
		DedicatedTo: store.Bare(body.DedicatedOrg.ID),
	}
	e.Fields = Rest(r.Content, []string{"natAndFirewallServiceIntention", "networkRouteAdvertisementIntention"})
	if old != nil {
		e.ID = old.ID
		e.Backing = old.Backing
		e.BackingName = old.BackingName
	} else if err := readBacking(r.Cloud, e, body); err != nil {
		return nil, err
	}
	if e.DedicatedTo != "" && r.Cloud.Store.Org(e.DedicatedTo) == nil {
		return nil, store.Forbidden("ORG_VIEW", e.DedicatedTo)
	}
	if e.Name == "" {
		return nil, store.BadRequest("The field name must not be empty.")
	}
	if slices.ContainsFunc(r.Cloud.Store.Model.ExternalNetworks,
		func(x store.ExternalNetwork) bool { return x.ID != e.ID && strings.EqualFold(x.Name, e.Name) }) {
		return nil, store.DuplicateName(e.Name)
	}
	if err := readExternalSubnets(e, body); err != nil {
		return nil, err
	}
	return e, EdgesOf(r.Cloud).checkAllocatedKept(e)
}

// checkAllocatedKept refuses to remove addresses that are allocated to gateways.
func (eg EdgeGateways) checkAllocatedKept(e *store.ExternalNetwork) error {
	var pools []store.Range
	for _, sub := range e.Subnets {
		pools = append(pools, sub.Pool...)
	}
	if e.ID != "" && !within(eg.allocatedAddresses(e.ID, nil), pools) {
		return store.BadRequest("Addresses of the external network %q are allocated to edge gateways and cannot be removed.",
			e.Name)
	}
	return nil
}

func readExternalSubnets(e *store.ExternalNetwork, body externalBody) error {
	for _, v := range body.Subnets.Values {
		gateway, err := netip.ParseAddr(v.Gateway)
		if err != nil {
			return store.BadRequest("The IP address %q is invalid.", v.Gateway)
		}
		s := store.ExternalSubnet{
			Gateway:   netip.PrefixFrom(gateway, v.PrefixLength),
			Disabled:  v.Enabled != nil && !*v.Enabled,
			DNS1:      v.DNS1,
			DNS2:      v.DNS2,
			DNSSuffix: v.DNSSuffix,
		}
		if s.Pool, err = v.IPRanges.Ranges(s.Gateway); err != nil {
			return err
		}
		e.Subnets = append(e.Subnets, s)
	}
	return nil
}

func readBacking(s *cloud.Cloud, e *store.ExternalNetwork, body externalBody) error {
	if len(body.Backings.Values) == 0 {
		return store.BadRequest("An external network must have a backing.")
	}
	b := body.Backings.Values[0]
	for _, known := range ExternalBackings(s) {
		if known.ID == b.ID {
			e.Backing = cmp.Or(b.TypeValue, b.Type)
			e.BackingName = known.Name
			return nil
		}
	}
	return store.BadRequest("The network backing %q does not exist.", b.ID)
}

func externalJSON(r *api.Request, e *store.ExternalNetwork) map[string]any {
	s := r.Cloud
	used := Count(EdgesOf(s).allocatedAddresses(e.ID, nil))
	total := 0
	subnets := []any{}
	for _, sub := range e.Subnets {
		total += Count(sub.Pool)
		subnets = append(subnets, map[string]any{
			"gateway":      sub.Gateway.Addr().String(),
			"prefixLength": sub.Gateway.Bits(),
			"dnsSuffix":    sub.DNSSuffix,
			"dnsServer1":   sub.DNS1,
			"dnsServer2":   sub.DNS2,
			"ipRanges":     RangesJSON(sub.Pool),
			"enabled":      !sub.Disabled,
			"totalIpCount": Count(sub.Pool),
			"usedIpCount":  Count(overlapping(EdgesOf(s).allocatedAddresses(e.ID, nil), sub.Pool)),
		})
	}
	name := cmp.Or(e.BackingName, strings.ToLower(e.Name))
	out := map[string]any{
		"id":                   store.URN("network", e.ID),
		"name":                 e.Name,
		"description":          e.Description,
		"status":               documents.Realization(s.Tasks, e.ID, false),
		"subnets":              map[string]any{"values": subnets},
		"totalIpCount":         total,
		"usedIpCount":          used,
		"usingIpSpace":         e.UsesSpaces,
		"dedicatedOrg":         nil,
		"dedicatedEdgeGateway": nil,
		"networkBackings": map[string]any{"values": []any{map[string]any{
			"backingId":         s.IDs.Named("backing", name),
			"name":              name,
			"backingType":       legacyBackingType(ExternalBacking(e)),
			"backingTypeValue":  ExternalBacking(e),
			"isNsxTVlanSegment": false,
			"parentTier0Ref":    nil,
			"networkProvider":   api.Ref("nsxtmanager", s.IDs.Named("nsxtmanager", vdcs.ProviderNetworks), vdcs.ProviderNetworks),
		}}},
	}
	maps.Copy(out, e.Fields)
	r.Newer("38.1", out, "natAndFirewallServiceIntention", "networkRouteAdvertisementIntention")
	if org := s.Store.Org(e.DedicatedTo); org != nil {
		out["dedicatedOrg"] = api.Ref("org", org.ID, org.Name)
	}
	if g := EdgesOf(s).dedicatedGateway(e.ID); g != nil {
		out["dedicatedEdgeGateway"] = api.Ref("gateway", g.ID, g.Name)
	}
	return out
}

// legacyBackingType returns the value of the older field, which distinguishes fewer types of backings.
func legacyBackingType(kind string) string {
	if kind == store.BackingTier0 {
		return kind
	}
	return "UNKNOWN"
}

// overlapping returns the ranges of a that overlap with b.
func overlapping(a, b []store.Range) []store.Range {
	return slices.DeleteFunc(slices.Clone(a), func(r store.Range) bool { return !Overlap([]store.Range{r}, b) })
}

// dedicatedGateway returns the gateway that an external network is dedicated to, or nil if it is not dedicated.
func (eg EdgeGateways) dedicatedGateway(external string) *store.EdgeGateway {
	for o := range eg.cloud.Store.Model.Orgs {
		for v := range eg.cloud.Store.Model.Orgs[o].VDCs {
			gateways := eg.cloud.Store.Model.Orgs[o].VDCs[v].EdgeGateways
			for g := range gateways {
				if slices.ContainsFunc(gateways[g].Uplinks,
					func(u store.Uplink) bool { return u.Network == external && u.Dedicated }) {
					return &gateways[g]
				}
			}
		}
	}
	return nil
}

func listExternal(r *api.Request) (*api.Response, error) {
	var out []any
	if r.Session.Provider() {
		for i := range r.Cloud.Store.Model.ExternalNetworks {
			out = append(out, externalJSON(r, &r.Cloud.Store.Model.ExternalNetworks[i]))
		}
	}
	return r.Page(out)
}

// ownExternal returns the external network in the path. Only a provider can see external networks.
func ownExternal(r *api.Request) (*store.ExternalNetwork, error) {
	e := r.Cloud.Store.External(store.Bare(r.Vars["id"]))
	if e == nil || !r.Session.Provider() {
		return nil, store.Forbidden("EXTERNAL_NETWORK_VIEW", r.Vars["id"])
	}
	return e, nil
}

func getExternal(r *api.Request, e *store.ExternalNetwork) (*api.Response, error) {
	return api.JSON(externalJSON(r, e)), nil
}

func createExternal(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("EXTERNAL_NETWORK_CREATE"); err != nil {
		return nil, err
	}
	e, err := readExternal(r, nil)
	if err != nil {
		return nil, err
	}
	e.ID = r.Cloud.IDs.Next("network")
	r.Cloud.Store.Model.ExternalNetworks = append(r.Cloud.Store.Model.ExternalNetworks, *e)
	return r.Start(store.Work{Op: "create externalNetwork", Creates: true}, e.Entity(), []string{e.ID}), nil
}

func putExternal(r *api.Request, old *store.ExternalNetwork) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(old.ID); err != nil {
		return nil, err
	}
	e, err := readExternal(r, old)
	if err != nil {
		return nil, err
	}
	*old = *e
	return r.Start(store.Work{Op: "update externalNetwork"}, e.Entity(), []string{e.ID}), nil
}

func deleteExternal(r *api.Request, e *store.ExternalNetwork) (*api.Response, error) {
	if err := r.Cloud.Tasks.CheckIdle(e.ID); err != nil {
		return nil, err
	}
	for o := range r.Cloud.Store.Model.Orgs {
		for v := range r.Cloud.Store.Model.Orgs[o].VDCs {
			for _, g := range r.Cloud.Store.Model.Orgs[o].VDCs[v].EdgeGateways {
				if slices.ContainsFunc(g.Uplinks, func(u store.Uplink) bool { return u.Network == e.ID }) {
					return nil, documents.InUse("external network", e.Name, "edge gateway "+g.Name)
				}
			}
		}
	}
	if spaces := spacesOf(r.Cloud).withUplinkTo(e.ID); len(spaces) > 0 {
		return nil, documents.InUse("external network", e.Name, "IP space "+spaces[0].Name)
	}
	return r.Start(store.Work{Op: "delete externalNetwork"}, e.Entity(), []string{e.ID}), nil
}

func commitDeleteExternal(s *cloud.Cloud, t *store.Task) error {
	m := &s.Store.Model
	m.ExternalNetworks = slices.DeleteFunc(m.ExternalNetworks,
		func(e store.ExternalNetwork) bool { return e.ID == t.Owner.ID })
	return nil
}
