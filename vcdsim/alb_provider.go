// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// What the provider has of NSX ALB.
const (
	controllerPath = "1.0.0/loadBalancer/controllers"
	cloudPath      = "1.0.0/loadBalancer/clouds"
	enginePath     = "1.0.0/loadBalancer/serviceEngineGroups"
)

// importableCloud and importableEngines are what can be imported from an ALB controller.
const (
	importableCloud   = "nsxalb-cloud"
	importableEngines = "Default-Group"
)

func providerScope(r *request, _ map[string]any) (scope, error) {
	return scope{}, r.byProvider("LOAD_BALANCER_PROVIDER_VIEW")
}

func controllerCollection() *collection {
	return &collection{
		path:     controllerPath,
		kind:     "loadBalancerController",
		right:    "LOAD_BALANCER_CONTROLLER",
		title:    "Load Balancer Controller",
		unique:   []string{"name"},
		required: []string{"name", "url"},
		hidden:   []string{"password"},
		scope:    providerScope,
		prepare:  keepPassword,
		show:     func(_ *request, _ *store.Object, out map[string]any) { out["password"] = hiddenPassword },
		defaults: map[string]any{"description": "", "licenseType": "ENTERPRISE", "version": "22.1.5"},
		free: func(r *request, d *store.Object) error {
			return balancingOf(r.cloud).usedIn(cloudPath, "load balancer controller", d, "loadBalancerCloudBacking",
				"loadBalancerControllerRef")
		},
	}
}

// hiddenPassword stands for a password in answers; sending it back does not change the password.
const hiddenPassword = "******"

func keepPassword(_ *request, body map[string]any, old *store.Object) error {
	if p := store.Text(body, "password"); old != nil && (p == "" || p == hiddenPassword) {
		body["password"] = old.Body["password"]
	}
	return nil
}

func cloudCollection() *collection {
	return &collection{
		path:     cloudPath,
		kind:     "loadBalancerCloud",
		right:    "LOAD_BALANCER_CLOUD",
		title:    "Load Balancer Cloud",
		unique:   []string{"name"},
		required: []string{"name"},
		scope:    providerScope,
		defaults: map[string]any{"description": ""},
		prepare: func(r *request, body map[string]any, _ *store.Object) error {
			backing, _ := body["loadBalancerCloudBacking"].(map[string]any)
			ref, err := documentReference(r.session, r.cloud.store, controllerPath, "LOAD_BALANCER_CONTROLLER_VIEW",
				store.RefID(backing, "loadBalancerControllerRef"))
			if err != nil {
				return err
			}
			backing["loadBalancerControllerRef"] = ref
			backing["backingType"] = cmp.Or(store.Text(backing, "backingType"), "NSXALB_NSXT")
			return nil
		},
		free: func(r *request, d *store.Object) error {
			return balancingOf(r.cloud).usedIn(enginePath, "load balancer cloud", d, "serviceEngineGroupBacking",
				"loadBalancerCloudRef")
		},
		show: func(r *request, d *store.Object, out map[string]any) {
			out["status"] = r.cloud.tasks.realization(store.Bare(d.ID()), d.Failed)
			out["healthStatus"] = "UP"
			out["detailedHealthMessage"] = ""
		},
	}
}

func engineCollection() *collection {
	return &collection{
		path:     enginePath,
		kind:     "serviceEngineGroup",
		right:    "SERVICE_ENGINE_GROUP",
		title:    "Service Engine Group",
		unique:   []string{"name"},
		required: []string{"name"},
		scope:    providerScope,
		fixed:    []string{"reservationType"},
		defaults: map[string]any{
			"description":         "",
			"reservationType":     "SHARED",
			"haMode":              "ELASTIC_N_PLUS_M_BUFFER",
			"maxVirtualServices":  100,
			"supportedFeatureSet": "PREMIUM",
		},
		prepare: func(r *request, body map[string]any, _ *store.Object) error {
			backing, _ := body["serviceEngineGroupBacking"].(map[string]any)
			ref, err := documentReference(r.session, r.cloud.store, cloudPath, "LOAD_BALANCER_CLOUD_VIEW",
				store.RefID(backing, "loadBalancerCloudRef"))
			if err == nil {
				backing["loadBalancerCloudRef"] = ref
			}
			return err
		},
		free: func(r *request, d *store.Object) error {
			if len(assignmentsOf(r.cloud.store.Documents, d.ID(), "")) > 0 {
				return inUse("service engine group", store.Text(d.Body, "name"), "an edge gateway")
			}
			return nil
		},
		show: func(r *request, d *store.Object, out map[string]any) {
			reserved := 0
			for _, a := range assignmentsOf(r.cloud.store.Documents, d.ID(), "") {
				reserved += number(a.Body["minVirtualServices"])
			}
			out["status"] = r.cloud.tasks.realization(store.Bare(d.ID()), d.Failed)
			out["numDeployedVirtualServices"] = deployedServices(r.cloud.store.Documents, d.ID(), "")
			out["reservedVirtualServices"] = reserved
			out["overAllocated"] = false
		},
	}
}

// maxServices is how many virtual services a group of service engines holds.
func maxServices(engines *store.Object) int { return number(engines.Body["maxVirtualServices"]) }

// loadBalancing computes the state of load balancers, their pools and service engine groups.
type loadBalancing struct{ cloud *cloud }

// balancingOf returns the load balancing of a cloud.
func balancingOf(c *cloud) loadBalancing { return loadBalancing{cloud: c} }

// usedIn refuses to delete what documents of a path refer to.
func (lb loadBalancing) usedIn(path, kind string, d *store.Object, object, ref string) error {
	for _, x := range lb.cloud.store.Documents[path] {
		if o, _ := x.Body[object].(map[string]any); store.RefID(o, ref) == d.ID() {
			return inUse(kind, store.Text(d.Body, "name"), store.Text(x.Body, "name"))
		}
	}
	return nil
}

func listImportableClouds(r *request) (*response, error) {
	if err := r.byProvider("LOAD_BALANCER_CLOUD_VIEW"); err != nil {
		return nil, err
	}
	if r.cloud.store.Documents.Find(controllerPath, r.filterValue("_context")) == nil {
		return nil, store.Forbidden("LOAD_BALANCER_CONTROLLER_VIEW", r.filterValue("_context"))
	}
	id := "cloud-" + r.cloud.ids.Named("albCloud", importableCloud)
	imported := slices.ContainsFunc(r.cloud.store.Documents[cloudPath], func(d *store.Object) bool {
		backing, _ := d.Body["loadBalancerCloudBacking"].(map[string]any)
		return store.Text(backing, "backingId") == id
	})
	return r.page([]any{map[string]any{
		"id":                id,
		"displayName":       importableCloud,
		"alreadyImported":   imported,
		"networkPoolRef":    jsonRef("networkPool", poolID(r.cloud), providerPool),
		"transportZoneName": providerPool,
	}})
}

func listImportableEngines(r *request) (*response, error) {
	if err := r.byProvider("SERVICE_ENGINE_GROUP_VIEW"); err != nil {
		return nil, err
	}
	if r.cloud.store.Documents.Find(cloudPath, r.filterValue("_context")) == nil {
		return nil, store.Forbidden("LOAD_BALANCER_CLOUD_VIEW", r.filterValue("_context"))
	}
	return r.cursorPage([]any{map[string]any{
		"id":          "serviceenginegroup-" + r.cloud.ids.Named("albEngines", importableEngines),
		"displayName": importableEngines,
		"haMode":      "ELASTIC_N_PLUS_M_BUFFER",
	}})
}

// syncEngines reads a service engine group again from the controller; nothing has changed there.
func syncEngines(r *request) (*response, error) {
	d, err := engineCollection().findScoped(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	return r.done(store.Entity{Kind: "serviceEngineGroup", ID: store.Bare(d.ID()), Name: store.Text(d.Body, "name")}), nil
}

// seedBalancers makes the load balancing that a model describes: a controller with a cloud, the service engine groups,
// and their assignments to gateways.
func seedBalancers(s *cloud) {
	engines := s.store.Model.ServiceEngineGroups
	if len(engines) == 0 {
		return
	}
	named := func(path, kind, name string, body map[string]any) *store.Object {
		body["id"] = store.URN(kind, s.ids.Named(kind, name))
		body["name"] = name
		body["description"] = ""
		return s.store.Documents.Add(path, "", body)
	}
	controller := named(controllerPath, "loadBalancerController", "alb1",
		map[string]any{
			"url":         "https://alb1.example",
			"username":    "admin",
			"password":    "password",
			"licenseType": "ENTERPRISE",
			"version":     "22.1.5",
		})
	cloud := named(cloudPath, "loadBalancerCloud", "alb1-cloud", map[string]any{
		"networkPoolRef": jsonRef("networkPool", poolID(s), providerPool),
		"loadBalancerCloudBacking": map[string]any{
			"backingId":                 "cloud-" + s.ids.Named("albCloud", importableCloud),
			"backingType":               "NSXALB_NSXT",
			"loadBalancerControllerRef": map[string]any{"id": controller.ID(), "name": "alb1"},
		},
	})
	for i, e := range engines {
		kind := "SHARED"
		if e.Dedicated {
			kind = "DEDICATED"
		}
		named(enginePath, "serviceEngineGroup", e.Name, map[string]any{
			"reservationType":     kind,
			"haMode":              "ELASTIC_N_PLUS_M_BUFFER",
			"maxVirtualServices":  cmp.Or(e.MaxService, 100),
			"supportedFeatureSet": "PREMIUM",
			"serviceEngineGroupBacking": map[string]any{
				"backingId":            fmt.Sprintf("serviceenginegroup-%d", i),
				"loadBalancerCloudRef": map[string]any{"id": cloud.ID(), "name": "alb1-cloud"},
			},
		})
	}
	for o := range s.store.Model.Orgs {
		for v := range s.store.Model.Orgs[o].VDCs {
			for g := range s.store.Model.Orgs[o].VDCs[v].EdgeGateways {
				seedAssignments(s, s.store.Model.Orgs[o].ID, &s.store.Model.Orgs[o].VDCs[v].EdgeGateways[g])
			}
		}
	}
}

func seedAssignments(s *cloud, orgID string, g *store.EdgeGateway) {
	if g.LoadBalancer == nil {
		return
	}
	for _, name := range g.LoadBalancer.Groups {
		i := slices.IndexFunc(s.store.Documents[enginePath],
			func(d *store.Object) bool { return store.Text(d.Body, "name") == name })
		if i < 0 {
			continue
		}
		engines := s.store.Documents[enginePath][i]
		d := s.store.Documents.Add(assignmentPath, orgID, map[string]any{
			"id": store.URN("serviceEngineGroupAssignment",
				s.ids.Named("serviceEngineGroupAssignment", g.ID+name)),
			"gatewayRef":            jsonRef("gateway", g.ID, g.Name),
			"serviceEngineGroupRef": map[string]any{"id": engines.ID(), "name": name},
		})
		d.Parent = g.ID
	}
}
