// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"cmp"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const (
	poolsPath     = "1.0.0/networkPools"
	poolOperation = "NETWORK_POOL_VIEW"
)

// Types of network pools. The type is the mechanism that separates the networks of a pool.
const (
	poolGeneve    = "GENEVE"
	poolVLAN      = "VLAN"
	poolPortGroup = "PORTGROUP_BACKED"
)

// poolTypeNumbers maps the types of network pools to their numbers in the query service.
var poolTypeNumbers = map[string]int{poolVLAN: 0, poolPortGroup: 2, poolGeneve: 4}

// transportZones lists the transport zones of NSX. The network pool of the provider VDC uses the first.
var transportZones = []string{"overlay-zone", "overlay-zone-2"}

// maxVLAN is the highest VLAN ID.
const maxVLAN = 4094

// poolCollection returns the collection of network pools. Lists contain summaries only.
func poolCollection() *documents.Collection {
	return &documents.Collection{
		Path:     poolsPath,
		Kind:     "networkPool",
		Right:    "NETWORK_POOL",
		Title:    "Network Pool",
		Hides:    true,
		Unique:   []string{"name"},
		Required: []string{"name", "poolType"},
		Fixed:    []string{"poolType", "managingOwnerRef"},
		Defaults: map[string]any{"description": "", "promiscuousMode": false},
		Prepare:  preparePool,
		Show:     showPool,
		Free:     checkPoolUnused,
		Scope: func(r *api.Request, _ map[string]any) (documents.Scope, error) {
			return documents.Scope{OrgID: r.Session.OrgID}, r.ByProvider(poolOperation)
		},
	}
}

func poolRoutes(add api.AddRoute) {
	add("GET", "/cloudapi/1.0.0/networkPools/networkPoolSummaries", listPools, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/nsxTResources/importableTransportZones", listTransportZones, cloud.LatencyCloudAPI)
	add("GET", "/api/admin/extension/networkPool/{id}", getPoolXML, cloud.LatencyLegacy)
}

// PoolID returns the ID of the provider VDC's network pool.
func PoolID(s *cloud.Cloud) string { return s.IDs.Named("networkPool", ProviderPool) }

// PoolName returns the name of the provider VDC's network pool.
func PoolName(s *cloud.Cloud) string {
	if d := s.Store.Documents.Find(poolsPath, store.URN("networkPool", PoolID(s))); d != nil {
		return store.Text(d.Body, "name")
	}
	return ProviderPool
}

// Pools returns the network pools.
func Pools(s *cloud.Cloud) []*store.Object { return s.Store.Documents[poolsPath] }

// PoolNumber returns the number of a pool's type in the query service.
func PoolNumber(pool *store.Object) int { return poolTypeNumbers[store.Text(pool.Body, "poolType")] }

// SeedPools creates the network pool of the provider VDC, if the model has a provider organization.
func SeedPools(s *cloud.Cloud) {
	provider := s.Store.OrgByName(store.SystemOrg)
	if provider == nil {
		return
	}
	s.Store.Documents.Add(poolsPath, provider.ID, map[string]any{
		"id":               store.URN("networkPool", PoolID(s)),
		"name":             ProviderPool,
		"description":      "",
		"poolType":         poolGeneve,
		"promiscuousMode":  false,
		"managingOwnerRef": managerRef(s),
		"backing": map[string]any{
			"providerRef":      managerRef(s),
			"transportZoneRef": backing(s.IDs.Named("transportZone", transportZones[0]), transportZones[0]),
			"vlanIdRanges":     nil,
			"vdsRefs":          nil,
			"portGroupRefs":    nil,
		},
	})
}

func managerRef(s *cloud.Cloud) map[string]any {
	return api.Ref("nsxtmanager", s.IDs.Named("nsxtmanager", ProviderNetworks), ProviderNetworks)
}

// preparePool checks the backing of a pool, and removes the fields that do not apply to its type.
func preparePool(r *api.Request, body map[string]any, old *store.Object) error {
	requested, _ := body["backing"].(map[string]any)
	owner := centerRef(r.Cloud.IDs)
	kind := store.Text(body, "poolType")
	if kind == poolGeneve {
		owner = managerRef(r.Cloud)
	}
	for _, id := range []string{store.RefID(body, "managingOwnerRef"), store.RefID(requested, "providerRef")} {
		if id != owner["id"] {
			return store.BadRequest("A network pool of the type %s cannot be managed by %q.", kind, id)
		}
	}
	result := map[string]any{
		"providerRef":      owner,
		"transportZoneRef": nil,
		"vlanIdRanges":     nil,
		"vdsRefs":          nil,
		"portGroupRefs":    nil,
	}
	body["managingOwnerRef"] = owner
	body["backing"] = result
	switch kind {
	case poolGeneve:
		return setZoneBacking(r.Cloud, requested, result, old)
	case poolPortGroup:
		return setPortGroupBacking(r.Cloud, requested, result, old)
	case poolVLAN:
		return setVLANBacking(requested, result)
	}
	return store.BadRequest("The network pool type %q is invalid.", kind)
}

func setZoneBacking(s *cloud.Cloud, requested, result map[string]any, old *store.Object) error {
	id := store.RefID(requested, "transportZoneRef")
	for _, name := range transportZones {
		if s.IDs.Named("transportZone", name) != id {
			continue
		}
		if user := poolOfZone(s, id); user != nil && user != old {
			return store.BadRequest("The transport zone %q is in use by the network pool %q.", name,
				store.Text(user.Body, "name"))
		}
		result["transportZoneRef"] = backing(id, name)
		return nil
	}
	return store.BadRequest("The transport zone %q does not exist.", id)
}

// poolOfZone returns the pool that uses a transport zone, or nil if no pool does.
func poolOfZone(s *cloud.Cloud, id string) *store.Object {
	for _, d := range s.Store.Documents[poolsPath] {
		have, _ := d.Body["backing"].(map[string]any)
		if store.RefID(have, "transportZoneRef") == id {
			return d
		}
	}
	return nil
}

func setPortGroupBacking(s *cloud.Cloud, requested, result map[string]any, old *store.Object) error {
	var previous []map[string]any
	if old != nil {
		previous = backings(old.Body, "portGroupRefs")
	}
	refs := []any{}
	for _, x := range backings(map[string]any{"backing": requested}, "portGroupRefs") {
		id := store.Text(x, "id")
		kept := slices.ContainsFunc(previous, func(y map[string]any) bool { return store.Text(y, "id") == id })
		if err := FreePortGroup(s, id); err != nil && !kept {
			return err
		}
		i := slices.IndexFunc(PortGroups, func(g PortGroup) bool { return g.Moref == id })
		refs = append(refs, backing(id, PortGroups[i].Name))
	}
	if len(refs) == 0 {
		return store.BadRequest("A network pool of the type %s needs a port group.", poolPortGroup)
	}
	result["portGroupRefs"] = refs
	return nil
}

func setVLANBacking(requested, result map[string]any) error {
	switches := backings(map[string]any{"backing": requested}, "vdsRefs")
	if len(switches) != 1 || store.Text(switches[0], "id") != switchMoref {
		return store.BadRequest("A network pool of the type %s needs a distributed switch that exists.", poolVLAN)
	}
	ranges, _ := requested["vlanIdRanges"].(map[string]any)
	values, _ := ranges["values"].([]any)
	if len(values) == 0 {
		return store.BadRequest("A network pool of the type %s needs a range of VLAN IDs.", poolVLAN)
	}
	var out []any
	for _, x := range values {
		r, _ := x.(map[string]any)
		from := documents.Number(r["startId"])
		to := documents.Number(r["endId"])
		if from < 1 || to > maxVLAN || from > to {
			return store.BadRequest("The range of VLAN IDs %d-%d is invalid.", from, to)
		}
		out = append(out, map[string]any{"startId": from, "endId": to})
	}
	result["vdsRefs"] = []any{backing(switchMoref, providerSwitch)}
	result["vlanIdRanges"] = map[string]any{"values": out}
	return nil
}

// backings returns the references in one field of a pool's backing.
func backings(body map[string]any, field string) []map[string]any {
	have, _ := body["backing"].(map[string]any)
	list, _ := have[field].([]any)
	var out []map[string]any
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// showPool adds the status and the number of backings. Networks of the simulator do not use any backing.
func showPool(r *api.Request, d *store.Object, out map[string]any) {
	out["status"] = documents.Realization(r.Cloud.Tasks, store.Bare(d.ID()), d.Failed)
	out["usedBackingsCount"] = 0
	total := len(backings(d.Body, "portGroupRefs"))
	have, _ := d.Body["backing"].(map[string]any)
	ranges, _ := have["vlanIdRanges"].(map[string]any)
	values, _ := ranges["values"].([]any)
	for _, x := range values {
		v, _ := x.(map[string]any)
		total += documents.Number(v["endId"]) - documents.Number(v["startId"]) + 1
	}
	out["totalBackingsCount"] = total
}

// checkPoolUnused refuses to delete the pool of the provider VDC.
func checkPoolUnused(s *cloud.Cloud, d *store.Object) error {
	if store.Bare(d.ID()) == PoolID(s) {
		return documents.InUse("network pool", store.Text(d.Body, "name"), "provider VDC "+ProviderVDC)
	}
	return nil
}

func listPools(r *api.Request) (*api.Response, error) {
	var out []any
	c := poolCollection()
	if r.Session.Provider() {
		for _, d := range Pools(r.Cloud) {
			summary := c.Shown(r, d)
			delete(summary, "backing")
			out = append(out, summary)
		}
	}
	return r.Page(out)
}

// listTransportZones returns the transport zones of the NSX manager that the filter selects.
func listTransportZones(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("NSXT_RESOURCES_VIEW"); err != nil {
		return nil, err
	}
	manager := cmp.Or(r.FilterValue("networkProviderId"), r.FilterValue("_context"))
	if store.Bare(manager) != r.Cloud.IDs.Named("nsxtmanager", ProviderNetworks) {
		return nil, store.Forbidden("NSXT_MANAGER_VIEW", manager)
	}
	var out []any
	for _, name := range transportZones {
		id := r.Cloud.IDs.Named("transportZone", name)
		out = append(out, map[string]any{
			"id":              id,
			"name":            name,
			"type":            poolGeneve,
			"alreadyImported": poolOfZone(r.Cloud, id) != nil,
		})
	}
	return r.CursorPage(out, "networkProviderId", "_context")
}

func getPoolXML(r *api.Request) (*api.Response, error) {
	d, err := poolCollection().Find(r, store.URN("networkPool", store.Bare(r.Vars["id"])))
	if err != nil {
		return nil, err
	}
	id := store.Bare(d.ID())
	return api.XML(xmltree.New("vmext:VMWNetworkPool", wire.Namespaces(),
		xmltree.A("href", PoolHref(r.Site, id)), xmltree.A("id", store.URN("networkpool", id)),
		xmltree.A("name", store.Text(d.Body, "name")), xmltree.A("type", MimePool),
		xmltree.T("Description", store.Text(d.Body, "description")))), nil
}

// MimePool is the media type of a network pool.
const MimePool = "application/vnd.vmware.admin.networkPool+xml"

// PoolHref returns the address of a network pool in the XML API.
func PoolHref(site wire.Site, id string) string {
	return site.Base() + "/api/admin/extension/networkPool/" + id
}

// poolRef returns a reference to the network pool of the provider VDC.
func poolRef(r *api.Request) *xmltree.Node {
	id := PoolID(r.Cloud)
	return xmltree.New("NetworkPoolReference", xmltree.A("href", PoolHref(r.Site, id)),
		xmltree.A("id", store.URN("networkpool", id)), xmltree.A("name", PoolName(r.Cloud)), xmltree.A("type", MimePool))
}
