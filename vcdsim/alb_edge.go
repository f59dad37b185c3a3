// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const assignmentPath = "1.0.0/loadBalancer/serviceEngineGroups/assignments"

func balancerRoutes(add addRoute) {
	add("GET", "/cloudapi/1.0.0/edgeGateways/{gateway}/loadBalancer/poolSummaries", summaries(poolPath, poolSummary),
		latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/edgeGateways/{gateway}/loadBalancer/virtualServiceSummaries",
		summaries(servicePath, serviceSummary), latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/nsxAlbResources/importableClouds", listImportableClouds, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/nsxAlbResources/importableServiceEngineGroups", listImportableEngines, latencyCloudAPI)
	add("POST", "/cloudapi/"+enginePath+"/{id}/sync", syncEngines, latencyWrite)
}

// prepareBalancer enables or disables the load balancer of a gateway. Only the provider may, and only while it is
// empty.
func prepareBalancer(r *request, body map[string]any) error {
	_, _, g, err := edgeByID(r.session, r.cloud.store, r.vars["gateway"])
	if err != nil {
		return err
	}
	if err := r.byProvider("LOAD_BALANCER_MANAGE"); err != nil {
		return err
	}
	on, _ := body["enabled"].(bool)
	if !on {
		for _, path := range []string{servicePath, poolPath, assignmentPath} {
			for _, d := range r.cloud.store.Documents[path] {
				if d.Parent == g.ID {
					return inUse("load balancer of", g.Name, store.Text(d.Body, "name")+" "+d.ID())
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

func showBalancer(r *request, p scope, out map[string]any) {
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
	_, _, g := r.cloud.store.Gateway(p.parent)
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
		out["serviceNetworkDefinition"] = nil // the default is used without any
	}
	maps.Copy(out, g.LoadBalancer.Fields)
	for _, d := range r.cloud.store.Documents[cloudPath] {
		out["loadBalancerCloudRef"] = map[string]any{"id": d.ID(), "name": store.Text(d.Body, "name")}
	}
}

func assignmentCollection() *collection {
	return &collection{
		path:    assignmentPath,
		kind:    "serviceEngineGroupAssignment",
		right:   "SERVICE_ENGINE_GROUP",
		title:   "Service Engine Group Assignment",
		fixed:   []string{"gatewayRef", "serviceEngineGroupRef"},
		scope:   balancedScope,
		prepare: prepareAssignment,
		free:    freeAssignment,
		show:    showAssignment,
	}
}

func prepareAssignment(r *request, body map[string]any, old *store.Object) error {
	if err := r.byProvider("SERVICE_ENGINE_GROUP_ASSIGN"); err != nil {
		return err
	}
	g, err := balancedGateway(r.session, r.cloud.store, body, old)
	if err != nil {
		return err
	}
	engines := r.cloud.store.Documents.Find(enginePath, store.RefID(body, "serviceEngineGroupRef"))
	if engines == nil {
		return store.Forbidden("SERVICE_ENGINE_GROUP_VIEW", store.RefID(body, "serviceEngineGroupRef"))
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": engines.ID(), "name": store.Text(engines.Body, "name")}
	dedicated := store.Text(engines.Body, "reservationType") == "DEDICATED"
	if dedicated && (body["maxVirtualServices"] != nil || body["minVirtualServices"] != nil) {
		return store.BadRequest("The number of virtual services cannot be set for a service engine group with the " +
			"reservation type DEDICATED.")
	}
	if number(body["minVirtualServices"]) > number(body["maxVirtualServices"]) {
		return store.BadRequest("The least number of virtual services is greater than the most.")
	}
	return balancingOf(r.cloud).assignable(engines, g, old, number(body["minVirtualServices"]))
}

// assignable refuses to assign a group of service engines twice to a gateway, a dedicated one to two, or more of it
// than there is.
func (lb loadBalancing) assignable(engines *store.Object, g *store.EdgeGateway, old *store.Object, reserved int) error {
	name := store.Text(engines.Body, "name")
	for _, d := range assignmentsOf(lb.cloud.store.Documents, engines.ID(), "") {
		switch {
		case d == old:
			continue
		case d.Parent == g.ID:
			return store.DuplicateName(name)
		case store.Text(engines.Body, "reservationType") == "DEDICATED":
			return store.BadRequest("The service engine group %q is dedicated to another edge gateway.", name)
		}
		reserved += number(d.Body["minVirtualServices"])
	}
	if reserved > maxServices(engines) {
		return store.BadRequest("The service engine group %q cannot hold so many virtual services.", name)
	}
	return nil
}

// number reads a JSON number, 0 if there is none.
func number(v any) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// assignmentsOf are those of a group of service engines or of a gateway, or of both.
func assignmentsOf(ds store.Objects, engines, gateway string) []*store.Object {
	var out []*store.Object
	for _, d := range ds[assignmentPath] {
		if (engines == "" || store.RefID(d.Body, "serviceEngineGroupRef") == engines) &&
			(gateway == "" || d.Parent == gateway) {
			out = append(out, d)
		}
	}
	return out
}

// deployedServices counts the virtual services of a gateway, or of all, on a group of service engines.
func deployedServices(ds store.Objects, engines, gateway string) int {
	n := 0
	for _, d := range ds[servicePath] {
		if store.RefID(d.Body, "serviceEngineGroupRef") == engines && (gateway == "" || d.Parent == gateway) {
			n++
		}
	}
	return n
}

// serviceEngineGroup checks the service engine group of a virtual service: assigned to the gateway, and not full.
func serviceEngineGroup(st *store.Store, body map[string]any, old *store.Object, g *store.EdgeGateway) error {
	id := store.RefID(body, "serviceEngineGroupRef")
	assigned := assignmentsOf(st.Documents, id, g.ID)
	engines := st.Documents.Find(enginePath, id)
	if id == "" || len(assigned) == 0 || engines == nil {
		return store.BadRequest("The service engine group %q is not assigned to the edge gateway %q.", id, g.Name)
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": id, "name": store.Text(engines.Body, "name")}
	limit := maxServices(engines)
	if n := number(assigned[0].Body["maxVirtualServices"]); n > 0 {
		limit = min(limit, n)
	}
	if old == nil && deployedServices(st.Documents, id, g.ID) >= limit {
		return store.BadRequest("The service engine group %q has no room for another virtual service of the edge "+
			"gateway %q.", store.Text(engines.Body, "name"), g.Name)
	}
	return nil
}

func freeAssignment(r *request, d *store.Object) error {
	if err := r.byProvider("SERVICE_ENGINE_GROUP_ASSIGN"); err != nil {
		return err
	}
	if n := deployedServices(r.cloud.store.Documents, store.RefID(d.Body, "serviceEngineGroupRef"), d.Parent); n > 0 {
		group, _ := d.Body["serviceEngineGroupRef"].(map[string]any) // checked when it was made
		return inUse("service engine group assignment", store.Text(group, "name"), "virtual services")
	}
	return nil
}

func showAssignment(r *request, d *store.Object, out map[string]any) {
	id := store.RefID(d.Body, "serviceEngineGroupRef")
	engines := r.cloud.store.Documents.Find(enginePath, id)
	if org, vdc, g := r.cloud.store.Gateway(d.Parent); g != nil {
		owned := map[string]any{}
		addEdgeOwner(org, vdc, g.Group, owned)
		out["gatewayOwnerRef"] = owned["ownerRef"]
		out["gatewayOrgRef"] = owned["orgRef"]
		out["gatewayRef"] = jsonRef("gateway", g.ID, g.Name)
	}
	out["numDeployedVirtualServices"] = deployedServices(r.cloud.store.Documents, id, d.Parent)
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

// policySettings are the HTTP policies of virtual services.
func policySettings() []*setting {
	var out []*setting
	for _, p := range []string{"request", "response", "security"} {
		out = append(out, &setting{
			path:  servicePath + "/{service}/httpPolicy/" + p + "Rules",
			kind:  "http" + p + "Policy",
			title: "HTTP " + p + " Policy",
			list:  true,
			scope: onService,
		})
	}
	return out
}

// onService is the scope of what belongs to the virtual service in the path: the service is busy, not its gateway.
func onService(r *request) (scope, error) {
	d, err := serviceCollection().findScoped(r, r.vars["service"])
	if err != nil {
		return scope{}, err
	}
	profile, _ := d.Body["applicationProfile"].(map[string]any)
	if r.Method != "GET" && !slices.Contains([]string{"HTTP", "HTTPS"}, store.Text(profile, "type")) {
		return scope{}, store.BadRequest("The virtual service %q has no HTTP policies.", store.Text(d.Body, "name"))
	}
	return scope{d.OrgID, store.Bare(d.ID()), []string{store.Bare(d.ID()), d.Parent}}, nil
}
