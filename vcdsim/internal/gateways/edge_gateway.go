// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

const edgePath = "/cloudapi/1.0.0/edgeGateways"

func edgeRoutes(add api.AddRoute) {
	add("GET", edgePath, listEdges, cloud.LatencyCloudAPI)
	add("POST", edgePath, createEdge, cloud.LatencyWrite)
	add("GET", edgePath+"/{id}", getEdge, cloud.LatencyCloudAPI)
	add("PUT", edgePath+"/{id}", putEdge, cloud.LatencyWrite)
	add("DELETE", edgePath+"/{id}", deleteEdge, cloud.LatencyWrite)
	add("GET", edgePath+"/{id}/usedIpAddresses", listUsed, cloud.LatencyCloudAPI)
}

// AddEdgeOwner adds references to the organization, and to the VDC or VDC group that owns an object.
func AddEdgeOwner(org *store.Org, vdc *store.VDC, group string, out map[string]any) {
	ref := api.Ref("vdc", vdc.ID, vdc.Name)
	out["orgRef"] = api.Ref("org", org.ID, org.Name)
	out["orgVdc"] = ref
	out["ownerRef"] = ref
	if g := org.Group(group); g != nil {
		out["orgVdc"] = nil
		out["ownerRef"] = api.Ref("vdcGroup", g.ID, g.Name)
	}
}

func edgeJSON(r *api.Request, org *store.Org, vdc *store.VDC, g *store.EdgeGateway) map[string]any {
	s := r.Cloud
	networks := 0
	for i := range org.VDCs {
		for _, n := range org.VDCs[i].Networks {
			if n.Edge == g.ID {
				networks++
			}
		}
	}
	cluster := s.IDs.Named("edgeCluster", EdgeCluster)
	out := map[string]any{
		"distributedRoutingEnabled":                false,
		"nonDistributedRoutingEnabled":             false,
		"deploymentMode":                           "ACTIVE_STANDBY",
		"serviceNetworkDefinition":                 "192.168.255.225/27",
		"distributedRouterUplinkNetworkDefinition": nil,
		"edgeClusterConfig": map[string]any{
			"primaryEdgeCluster": map[string]any{
				"edgeClusterRef": map[string]any{"name": EdgeCluster, "id": cluster},
				"backingId":      cluster,
			},
			"secondaryEdgeCluster": nil,
		},
	}
	maps.Copy(out, g.Fields)
	uplinks := []any{}
	spaces := false
	for _, u := range g.Uplinks {
		spaces = spaces || EdgesOf(s).usesSpaces(u)
		uplinks = append(uplinks, uplinkJSON(r.Cloud, g, u))
	}
	maps.Copy(out, map[string]any{
		"id":                 store.URN("gateway", g.ID),
		"name":               g.Name,
		"description":        g.Description,
		"status":             documents.Realization(s.Tasks, g.ID, g.Failed),
		"edgeGatewayUplinks": uplinks,
		"orgVdcNetworkCount": networks,
		"usingIpSpace":       spaces,
		"gatewayBacking": map[string]any{
			"backingId":       s.IDs.Named("tier1", g.ID),
			"gatewayType":     "NSXT_BACKED",
			"networkProvider": api.Ref("nsxtmanager", s.IDs.Named("nsxtmanager", vdcs.ProviderNetworks), vdcs.ProviderNetworks),
		},
	})
	AddEdgeOwner(org, vdc, g.Group, out)
	r.Newer("38.0", out, "usingIpSpace", "deploymentMode")
	return out
}

func listEdges(r *api.Request) (*api.Response, error) {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for v := range o.VDCs {
			for g := range o.VDCs[v].EdgeGateways {
				out = append(out, edgeJSON(r, o, &o.VDCs[v], &o.VDCs[v].EdgeGateways[g]))
			}
		}
	}
	return r.Page(out)
}

func getEdge(r *api.Request) (*api.Response, error) {
	org, vdc, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	return api.JSON(edgeJSON(r, org, vdc, g)), nil
}

// An edgeBody holds the fields of a gateway that the simulator reads.
type edgeBody struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	OwnerRef    JSONRefBody  `json:"ownerRef"`
	OrgVdc      JSONRefBody  `json:"orgVdc"`
	Uplinks     []uplinkBody `json:"edgeGatewayUplinks"`
}

// A JSONRefBody is a reference in a JSON body.
type JSONRefBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Owner returns the ID of the VDC or VDC group that owns an object. Older clients send only a VDC.
func Owner(ownerRef, orgVDC JSONRefBody) string {
	if ownerRef.ID != "" {
		return ownerRef.ID
	}
	return orgVDC.ID
}

// edgeFields are the fields of a gateway that are stored unchanged.
var edgeFields = []string{
	"distributedRoutingEnabled", "nonDistributedRoutingEnabled", "deploymentMode",
	"serviceNetworkDefinition", "edgeClusterConfig",
}

// readEdge reads and checks a gateway. The gateway replaces old, which is nil for a new gateway.
func readEdge(r *api.Request, old *store.EdgeGateway) (*store.VDC, *store.EdgeGateway, error) {
	var body edgeBody
	if err := r.Document(&body); err != nil {
		return nil, nil, err
	}
	_, vdc, group, err := EdgeOwner(r.Session, r.Cloud.Store, Owner(body.OwnerRef, body.OrgVdc))
	if err != nil {
		return nil, nil, err
	}
	g := &store.EdgeGateway{Name: body.Name, Description: body.Description, Group: group, Fields: Rest(r.Content, edgeFields)}
	if g.Name == "" || len(body.Uplinks) == 0 {
		return nil, nil, store.BadRequest("An edge gateway must have a name and an uplink.")
	}
	if old != nil {
		g.ID = old.ID
		g.LoadBalancer = old.LoadBalancer
	}
	if slices.ContainsFunc(vdc.EdgeGateways, func(x store.EdgeGateway) bool { return x.Name == g.Name && x.ID != g.ID }) {
		return nil, nil, store.DuplicateName(g.Name)
	}
	for i, u := range body.Uplinks {
		uplink, err := EdgesOf(r.Cloud).readUplink(u, old, i == 0)
		if err != nil {
			return nil, nil, err
		}
		g.Uplinks = append(g.Uplinks, uplink)
	}
	return vdc, g, EdgesOf(r.Cloud).checkUsedKept(old, g)
}

// EdgeOwner returns the VDC with the given ID. If the ID is that of a VDC group, it returns the first VDC of the group
// and the ID of the group.
func EdgeOwner(session *store.Session, st *store.Store, id string) (org *store.Org, vdc *store.VDC, group string, err error) {
	if org, vdc = st.VDC(store.Bare(id)); vdc == nil {
		if org, vdc = st.FirstOf(store.Bare(id)); vdc != nil {
			group = store.Bare(id)
		}
	}
	if vdc == nil || !session.Sees(org.ID) {
		return nil, nil, "", store.Forbidden("VDC_VIEW", id)
	}
	return org, vdc, group, nil
}

func createEdge(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("GATEWAY_CREATE"); err != nil {
		return nil, err
	}
	vdc, g, err := readEdge(r, nil)
	if err != nil {
		return nil, err
	}
	g.ID = r.Cloud.IDs.Next("gateway")
	vdc.EdgeGateways = append(vdc.EdgeGateways, *g)
	return r.Start(store.Work{Op: "create edgeGateway", Creates: true}, g.Entity(), []string{g.ID}), nil
}

func putEdge(r *api.Request) (*api.Response, error) {
	_, vdc, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	if err := r.ByProvider("GATEWAY_UPDATE"); err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(g.ID); err != nil {
		return nil, err
	}
	to, next, err := readEdge(r, g)
	if err != nil {
		return nil, err
	}
	if *g = *next; to != vdc && g.Group == "" {
		moved := *g
		vdc.EdgeGateways = slices.DeleteFunc(vdc.EdgeGateways, func(x store.EdgeGateway) bool { return x.ID == moved.ID })
		to.EdgeGateways = append(to.EdgeGateways, moved)
	}
	EdgesOf(r.Cloud).moveNetworks(next.ID, next.Group)
	return r.Start(store.Work{Op: "update edgeGateway"}, next.Entity(), []string{next.ID}), nil
}

// moveNetworks sets the VDC group of all networks of a gateway. An empty group removes them from their group.
func (eg EdgeGateways) moveNetworks(gateway, group string) {
	for o := range eg.cloud.Store.Model.Orgs {
		for v := range eg.cloud.Store.Model.Orgs[o].VDCs {
			networks := eg.cloud.Store.Model.Orgs[o].VDCs[v].Networks
			for n := range networks {
				if networks[n].Edge == gateway {
					networks[n].Group = group
				}
			}
		}
	}
}

func deleteEdge(r *api.Request) (*api.Response, error) {
	org, _, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	if err := r.ByProvider("GATEWAY_DELETE"); err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(g.ID); err != nil {
		return nil, err
	}
	for v := range org.VDCs {
		for _, n := range org.VDCs[v].Networks {
			if n.Edge == g.ID {
				return nil, documents.InUse("edge gateway", g.Name, "network "+n.Name)
			}
		}
	}
	for _, path := range []string{documents.PoolPath, documents.ServicePath, documents.MonitorPath, documents.AssignmentPath} {
		for _, d := range r.Cloud.Store.Documents[path] {
			if d.Parent == g.ID {
				return nil, documents.InUse("edge gateway", g.Name, store.Text(d.Body, "name")+" "+d.ID())
			}
		}
	}
	return r.Start(store.Work{Op: "delete edgeGateway"}, g.Entity(), []string{g.ID}), nil
}

// commitDeleteEdge removes a gateway and the documents on it.
func commitDeleteEdge(s *cloud.Cloud, t *store.Task) error {
	if !RemoveGateway(s, t.Owner.ID) {
		return cloud.Gone("edge gateway", t.Owner.ID)
	}
	return nil
}

// RemoveGateway removes a gateway and the documents on it. It reports whether the gateway existed.
func RemoveGateway(s *cloud.Cloud, id string) bool {
	_, vdc, g := s.Store.Gateway(id)
	if g == nil {
		return false
	}
	vdc.EdgeGateways = slices.DeleteFunc(vdc.EdgeGateways, func(x store.EdgeGateway) bool { return x.ID == id })
	documents.RemoveDocumentsOf(s, id)
	return true
}
