// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"
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
	_, _, g, err := edgeByID(r, r.vars["gateway"])
	if err != nil {
		return err
	}
	if err := r.byProvider("LOAD_BALANCER_MANAGE"); err != nil {
		return err
	}
	on, _ := body["enabled"].(bool)
	if !on {
		for _, path := range []string{servicePath, poolPath, assignmentPath} {
			for _, d := range r.sim.store.Documents[path] {
				if d.Parent == g.ID {
					return inUse("load balancer of", g.Name, text(d.Body, "name")+" "+d.id())
				}
			}
		}
		g.LoadBalancer = nil
		return nil
	}
	g.LoadBalancer = &LoadBalancer{Enabled: true, Fields: map[string]any{}}
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
	_, _, g := r.sim.store.gateway(p.parent)
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
	if g.LoadBalancer.setting("ipv6ServiceNetworkDefinition") != "" {
		out["serviceNetworkDefinition"] = nil // the default is used without any
	}
	maps.Copy(out, g.LoadBalancer.Fields)
	for _, d := range r.sim.store.Documents[cloudPath] {
		out["loadBalancerCloudRef"] = map[string]any{"id": d.id(), "name": text(d.Body, "name")}
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

func prepareAssignment(r *request, body map[string]any, old *document) error {
	if err := r.byProvider("SERVICE_ENGINE_GROUP_ASSIGN"); err != nil {
		return err
	}
	g, err := balancedGateway(r, body, old)
	if err != nil {
		return err
	}
	engines := r.sim.store.Documents.find(enginePath, refID(body, "serviceEngineGroupRef"))
	if engines == nil {
		return forbidden("SERVICE_ENGINE_GROUP_VIEW", refID(body, "serviceEngineGroupRef"))
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": engines.id(), "name": text(engines.Body, "name")}
	dedicated := text(engines.Body, "reservationType") == "DEDICATED"
	if dedicated && (body["maxVirtualServices"] != nil || body["minVirtualServices"] != nil) {
		return badRequest("The number of virtual services cannot be set for a service engine group with the " +
			"reservation type DEDICATED.")
	}
	if number(body["minVirtualServices"]) > number(body["maxVirtualServices"]) {
		return badRequest("The least number of virtual services is greater than the most.")
	}
	return r.sim.alb.assignable(engines, g, old, number(body["minVirtualServices"]))
}

// assignable refuses to assign a group of service engines twice to a gateway, a dedicated one to two, or more of it
// than there is.
func (lb *loadBalancing) assignable(engines *document, g *EdgeGateway, old *document, reserved int) error {
	name := text(engines.Body, "name")
	for _, d := range lb.sim.store.Documents.assignments(engines.id(), "") {
		switch {
		case d == old:
			continue
		case d.Parent == g.ID:
			return duplicateName(name)
		case text(engines.Body, "reservationType") == "DEDICATED":
			return badRequest("The service engine group %q is dedicated to another edge gateway.", name)
		}
		reserved += number(d.Body["minVirtualServices"])
	}
	if reserved > maxServices(engines) {
		return badRequest("The service engine group %q cannot hold so many virtual services.", name)
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

// assignments are those of a group of service engines or of a gateway, or of both.
func (ds documents) assignments(engines, gateway string) []*document {
	var out []*document
	for _, d := range ds[assignmentPath] {
		if (engines == "" || refID(d.Body, "serviceEngineGroupRef") == engines) &&
			(gateway == "" || d.Parent == gateway) {
			out = append(out, d)
		}
	}
	return out
}

// deployedServices counts the virtual services of a gateway, or of all, on a group of service engines.
func (ds documents) deployedServices(engines, gateway string) int {
	n := 0
	for _, d := range ds[servicePath] {
		if refID(d.Body, "serviceEngineGroupRef") == engines && (gateway == "" || d.Parent == gateway) {
			n++
		}
	}
	return n
}

// serviceEngineGroup checks the service engine group of a virtual service: assigned to the gateway, and not full.
func serviceEngineGroup(r *request, body map[string]any, old *document, g *EdgeGateway) error {
	id := refID(body, "serviceEngineGroupRef")
	assigned := r.sim.store.Documents.assignments(id, g.ID)
	engines := r.sim.store.Documents.find(enginePath, id)
	if id == "" || len(assigned) == 0 || engines == nil {
		return badRequest("The service engine group %q is not assigned to the edge gateway %q.", id, g.Name)
	}
	body["serviceEngineGroupRef"] = map[string]any{"id": id, "name": text(engines.Body, "name")}
	limit := maxServices(engines)
	if n := number(assigned[0].Body["maxVirtualServices"]); n > 0 {
		limit = min(limit, n)
	}
	if old == nil && r.sim.store.Documents.deployedServices(id, g.ID) >= limit {
		return badRequest("The service engine group %q has no room for another virtual service of the edge "+
			"gateway %q.", text(engines.Body, "name"), g.Name)
	}
	return nil
}

func freeAssignment(r *request, d *document) error {
	if err := r.byProvider("SERVICE_ENGINE_GROUP_ASSIGN"); err != nil {
		return err
	}
	if n := r.sim.store.Documents.deployedServices(refID(d.Body, "serviceEngineGroupRef"), d.Parent); n > 0 {
		group, _ := d.Body["serviceEngineGroupRef"].(map[string]any) // checked when it was made
		return inUse("service engine group assignment", text(group, "name"), "virtual services")
	}
	return nil
}

func showAssignment(r *request, d *document, out map[string]any) {
	id := refID(d.Body, "serviceEngineGroupRef")
	engines := r.sim.store.Documents.find(enginePath, id)
	if org, vdc, g := r.sim.store.gateway(d.Parent); g != nil {
		owned := map[string]any{}
		addEdgeOwner(org, vdc, g.Group, owned)
		out["gatewayOwnerRef"] = owned["ownerRef"]
		out["gatewayOrgRef"] = owned["orgRef"]
		out["gatewayRef"] = jsonRef("gateway", g.ID, g.Name)
	}
	out["numDeployedVirtualServices"] = r.sim.store.Documents.deployedServices(id, d.Parent)
	if engines == nil {
		return
	}
	out["serviceEngineGroupRef"] = map[string]any{"id": id, "name": text(engines.Body, "name")}
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
	if r.Method != "GET" && !slices.Contains([]string{"HTTP", "HTTPS"}, text(profile, "type")) {
		return scope{}, badRequest("The virtual service %q has no HTTP policies.", text(d.Body, "name"))
	}
	return scope{d.OrgID, bare(d.id()), []string{bare(d.id()), d.Parent}}, nil
}
