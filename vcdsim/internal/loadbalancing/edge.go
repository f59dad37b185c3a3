// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Routes adds the routes of load balancing that are not part of a collection.
func Routes(add api.AddRoute) {
	add("GET", "/cloudapi/1.0.0/edgeGateways/{gateway}/loadBalancer/poolSummaries", summaries(documents.PoolPath, poolSummary),
		cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/edgeGateways/{gateway}/loadBalancer/virtualServiceSummaries",
		summaries(documents.ServicePath, serviceSummary), cloud.LatencyCloudAPI)
	monitorRoutes(add)
	add("GET", "/cloudapi/1.0.0/nsxAlbResources/importableClouds", listImportableClouds, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/nsxAlbResources/importableServiceEngineGroups", listImportableEngines, cloud.LatencyCloudAPI)
	add("POST", "/cloudapi/"+enginePath+"/{id}/sync", syncEngines, cloud.LatencyWrite)
}

// prepareBalancer enables or disables the load balancer of a gateway. Only a provider can do so, and can disable it
// only while it is empty.
func prepareBalancer(r *api.Request, body map[string]any) error {
	_, _, g, err := gateways.EdgeByID(r.Session, r.Cloud.Store, r.Vars["gateway"])
	if err != nil {
		return err
	}
	if err := r.ByProvider("LOAD_BALANCER_MANAGE"); err != nil {
		return err
	}
	on, _ := body["enabled"].(bool)
	if !on {
		for _, path := range []string{documents.ServicePath, documents.PoolPath, documents.MonitorPath, documents.AssignmentPath} {
			for _, d := range r.Cloud.Store.Documents[path] {
				if d.Parent == g.ID {
					return documents.InUse("load balancer of", g.Name, store.Text(d.Body, "name")+" "+d.ID())
				}
			}
		}
		g.LoadBalancer = nil
		return nil
	}
	g.LoadBalancer = &store.LoadBalancer{Enabled: true, Fields: map[string]any{}}
	for _, f := range []string{
		"serviceNetworkDefinition", "ipv6ServiceNetworkDefinition", "supportedFeatureSet",
		"transparentModeEnabled",
	} {
		if body[f] != nil && body[f] != "" {
			g.LoadBalancer.Fields[f] = body[f]
		}
	}
	return nil
}

func showBalancer(r *api.Request, p documents.Scope, out map[string]any) {
	clear(out)
	maps.Copy(out, map[string]any{
		"enabled":                      false,
		"serviceNetworkDefinition":     nil,
		"ipv6ServiceNetworkDefinition": nil,
		"loadBalancerCloudRef":         nil,
		"licenseType":                  nil,
		"supportedFeatureSet":          nil,
		"transparentModeEnabled":       nil,
	})
	_, _, g := r.Cloud.Store.Gateway(p.Parent)
	if g == nil || g.LoadBalancer == nil || !g.LoadBalancer.Enabled {
		return
	}
	maps.Copy(out, map[string]any{
		"enabled":                  true,
		"serviceNetworkDefinition": "192.168.255.1/25",
		"supportedFeatureSet":      "PREMIUM",
		"transparentModeEnabled":   false,
		"licenseType":              "ENTERPRISE",
	})
	if balancerSetting(g.LoadBalancer, "ipv6ServiceNetworkDefinition") != "" {
		out["serviceNetworkDefinition"] = nil // the default applies only if no network is set
	}
	maps.Copy(out, g.LoadBalancer.Fields)
	for _, d := range r.Cloud.Store.Documents[cloudPath] {
		out["loadBalancerCloudRef"] = map[string]any{"id": d.ID(), "name": store.Text(d.Body, "name")}
	}
}

func assignmentCollection() *documents.Collection {
	return &documents.Collection{
		Path:      documents.AssignmentPath,
		Kind:      "serviceEngineGroupAssignment",
		Right:     "SERVICE_ENGINE_GROUP",
		Title:     "Service Engine Group Assignment",
		Fixed:     []string{"gatewayRef", "serviceEngineGroupRef"},
		Scope:     gatewayScope,
		Prepare:   prepareAssignment,
		MayDelete: func(r *api.Request) error { return r.ByProvider("SERVICE_ENGINE_GROUP_ASSIGN") },
		Free:      checkAssignmentUnused,
		Show:      showAssignment,
	}
}

func prepareAssignment(r *api.Request, body map[string]any, old *store.Object) error {
	if err := r.ByProvider("SERVICE_ENGINE_GROUP_ASSIGN"); err != nil {
		return err
	}
	g, err := loadBalancerGateway(r.Session, r.Cloud.Store, body, old)
	if err != nil {
		return err
	}
	engines := r.Cloud.Store.Documents.Find(enginePath, store.RefID(body, "serviceEngineGroupRef"))
	if engines == nil {
		return store.Forbidden("SERVICE_ENGINE_GROUP_VIEW", store.RefID(body, "serviceEngineGroupRef"))
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": engines.ID(), "name": store.Text(engines.Body, "name")}
	dedicated := store.Text(engines.Body, "reservationType") == "DEDICATED"
	if dedicated && (body["maxVirtualServices"] != nil || body["minVirtualServices"] != nil) {
		return store.BadRequest("The number of virtual services cannot be set for a service engine group with the reservation type DEDICATED.")
	}
	if documents.Number(body["minVirtualServices"]) > documents.Number(body["maxVirtualServices"]) {
		return store.BadRequest("The least number of virtual services is greater than the most.")
	}
	return BalancingOf(r.Cloud).checkAssignable(engines, g, old, documents.Number(body["minVirtualServices"]))
}

// checkAssignable refuses to assign a service engine group to a gateway twice, or a dedicated group to two gateways. It
// also refuses to reserve more virtual services than the group can hold.
func (lb LoadBalancing) checkAssignable(engines *store.Object, g *store.EdgeGateway, old *store.Object, reserved int) error {
	name := store.Text(engines.Body, "name")
	for _, d := range assignmentsOf(lb.cloud.Store.Documents, engines.ID(), "") {
		switch {
		case d == old:
			continue
		case d.Parent == g.ID:
			return store.DuplicateName(name)
		case store.Text(engines.Body, "reservationType") == "DEDICATED":
			return store.BadRequest("The service engine group %q is dedicated to another edge gateway.", name)
		}
		reserved += documents.Number(d.Body["minVirtualServices"])
	}
	if reserved > maxServices(engines) {
		return store.BadRequest("The service engine group %q cannot hold so many virtual services.", name)
	}
	return nil
}

// assignmentsOf returns the assignments of a service engine group, of a gateway, or of both. An empty ID matches all.
func assignmentsOf(ds store.Objects, engines, gateway string) []*store.Object {
	var out []*store.Object
	for _, d := range ds[documents.AssignmentPath] {
		if (engines == "" || store.RefID(d.Body, "serviceEngineGroupRef") == engines) &&
			(gateway == "" || d.Parent == gateway) {
			out = append(out, d)
		}
	}
	return out
}

// deployedServices counts the virtual services on a service engine group. An empty gateway counts those of all
// gateways.
func deployedServices(ds store.Objects, engines, gateway string) int {
	n := 0
	for _, d := range ds[documents.ServicePath] {
		if store.RefID(d.Body, "serviceEngineGroupRef") == engines && (gateway == "" || d.Parent == gateway) {
			n++
		}
	}
	return n
}

// checkServiceEngineGroup checks that the service engine group of a virtual service is assigned to the gateway and has
// capacity. It completes the reference to the group.
func checkServiceEngineGroup(st *store.Store, body map[string]any, old *store.Object, g *store.EdgeGateway) error {
	id := store.RefID(body, "serviceEngineGroupRef")
	assigned := assignmentsOf(st.Documents, id, g.ID)
	engines := st.Documents.Find(enginePath, id)
	if id == "" || len(assigned) == 0 || engines == nil {
		return store.BadRequest("The service engine group %q is not assigned to the edge gateway %q.", id, g.Name)
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": id, "name": store.Text(engines.Body, "name")}
	limit := maxServices(engines)
	if n := documents.Number(assigned[0].Body["maxVirtualServices"]); n > 0 {
		limit = min(limit, n)
	}
	if old == nil && deployedServices(st.Documents, id, g.ID) >= limit {
		return store.BadRequest("The service engine group %q has no room for another virtual service of the edge gateway %q.", store.Text(engines.Body, "name"), g.Name)
	}
	return nil
}

func checkAssignmentUnused(s *cloud.Cloud, d *store.Object) error {
	if n := deployedServices(s.Store.Documents, store.RefID(d.Body, "serviceEngineGroupRef"), d.Parent); n > 0 {
		group, _ := d.Body["serviceEngineGroupRef"].(map[string]any) // prepareAssignment has checked it
		return documents.InUse("service engine group assignment", store.Text(group, "name"), "virtual services")
	}
	return nil
}

func showAssignment(r *api.Request, d *store.Object, out map[string]any) {
	id := store.RefID(d.Body, "serviceEngineGroupRef")
	engines := r.Cloud.Store.Documents.Find(enginePath, id)
	if org, vdc, g := r.Cloud.Store.Gateway(d.Parent); g != nil {
		owned := map[string]any{}
		gateways.AddEdgeOwner(org, vdc, g.Group, owned)
		out["gatewayOwnerRef"] = owned["ownerRef"]
		out["gatewayOrgRef"] = owned["orgRef"]
		out["gatewayRef"] = api.Ref("gateway", g.ID, g.Name)
	}
	out["numDeployedVirtualServices"] = deployedServices(r.Cloud.Store.Documents, id, d.Parent)
	if engines == nil {
		return
	}
	out["serviceEngineGroupRef"] = map[string]any{"id": id, "name": store.Text(engines.Body, "name")}
	out["serviceEngineGroupSupportedFeatureSet"] = engines.Body["supportedFeatureSet"]
	out["gatewaySupportedFeatureSet"] = "PREMIUM"
	out["serviceEngineGroupHaMode"] = engines.Body["haMode"]
	if out["maxVirtualServices"] == nil {
		out["maxVirtualServices"] = maxServices(engines)
	}
	if out["minVirtualServices"] == nil {
		out["minVirtualServices"] = 0
	}
}

// policySettings returns the settings with the HTTP policies of virtual services.
func policySettings() []*documents.Setting {
	var out []*documents.Setting
	for _, p := range []string{"request", "response", "security"} {
		out = append(out, &documents.Setting{
			Path:  documents.ServicePath + "/{service}/httpPolicy/" + p + "Rules",
			Kind:  "http" + p + "Policy",
			Title: "HTTP " + p + " Policy",
			List:  true,
			Scope: serviceScope,
		})
	}
	return out
}

// serviceScope returns the scope of the virtual service in the path. Changes lock the service and its gateway.
func serviceScope(r *api.Request) (documents.Scope, error) {
	d, err := serviceCollection().FindScoped(r, r.Vars["service"])
	if err != nil {
		return documents.Scope{}, err
	}
	profile, _ := d.Body["applicationProfile"].(map[string]any)
	if r.Method != "GET" && !slices.Contains([]string{"HTTP", "HTTPS"}, store.Text(profile, "type")) {
		return documents.Scope{}, store.BadRequest("The virtual service %q has no HTTP policies.", store.Text(d.Body, "name"))
	}
	return documents.Scope{OrgID: d.OrgID, Parent: store.Bare(d.ID()), Locks: []string{store.Bare(d.ID()), d.Parent}}, nil
}
