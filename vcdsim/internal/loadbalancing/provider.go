// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// Paths of the NSX ALB objects of the provider.
const (
	controllerPath = "1.0.0/loadBalancer/controllers"
	cloudPath      = "1.0.0/loadBalancer/clouds"
	enginePath     = "1.0.0/loadBalancer/serviceEngineGroups"
)

// importableCloud and importableEngines are the names of the objects that can be imported from an ALB controller.
const (
	importableCloud   = "nsxalb-cloud"
	importableEngines = "Default-Group"
)

func controllerCollection() *documents.Collection {
	return &documents.Collection{
		Path:     controllerPath,
		Kind:     "loadBalancerController",
		Right:    "LOAD_BALANCER_CONTROLLER",
		Title:    "Load Balancer Controller",
		Unique:   []string{"name"},
		Required: []string{"name", "url"},
		Hidden:   []string{"password"},
		Scope:    documents.ProviderScope,
		Prepare:  keepPassword,
		Show:     func(_ *api.Request, _ *store.Object, out map[string]any) { out["password"] = hiddenPassword },
		Defaults: map[string]any{"description": "", "licenseType": "", "version": "22.1.5"},
		Free: func(s *cloud.Cloud, d *store.Object) error {
			return BalancingOf(s).checkUnusedIn(cloudPath, "load balancer controller", d, "loadBalancerCloudBacking",
				"loadBalancerControllerRef")
		},
	}
}

// hiddenPassword replaces a password in responses. A request that contains it does not change the password.
const hiddenPassword = "******"

func keepPassword(_ *api.Request, body map[string]any, old *store.Object) error {
	if p := store.Text(body, "password"); old != nil && (p == "" || p == hiddenPassword) {
		body["password"] = old.Body["password"]
	}
	return nil
}

func cloudCollection() *documents.Collection {
	return &documents.Collection{
		Path:     cloudPath,
		Kind:     "loadBalancerCloud",
		Right:    "LOAD_BALANCER_CLOUD",
		Title:    "Load Balancer Cloud",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Scope:    documents.ProviderScope,
		Defaults: map[string]any{"description": ""},
		Prepare: func(r *api.Request, body map[string]any, _ *store.Object) error {
			backing, _ := body["loadBalancerCloudBacking"].(map[string]any)
			ref, err := gateways.DocumentReference(r.Session, r.Cloud.Store, controllerPath, "LOAD_BALANCER_CONTROLLER_VIEW",
				store.RefID(backing, "loadBalancerControllerRef"))
			if err != nil {
				return err
			}
			backing["loadBalancerControllerRef"] = ref
			backing["backingType"] = cmp.Or(store.Text(backing, "backingType"), "NSXALB_NSXT")
			return nil
		},
		Free: func(s *cloud.Cloud, d *store.Object) error {
			return BalancingOf(s).checkUnusedIn(enginePath, "load balancer cloud", d, "serviceEngineGroupBacking",
				"loadBalancerCloudRef")
		},
		Show: func(r *api.Request, d *store.Object, out map[string]any) {
			out["status"] = documents.Realization(r.Cloud.Tasks, store.Bare(d.ID()), d.Failed)
			out["healthStatus"] = "UP"
			out["detailedHealthMessage"] = ""
		},
	}
}

func engineCollection() *documents.Collection {
	return &documents.Collection{
		Path:     enginePath,
		Kind:     "serviceEngineGroup",
		Right:    "SERVICE_ENGINE_GROUP",
		Title:    "Service Engine Group",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Scope:    documents.ProviderScope,
		Fixed:    []string{"reservationType"},
		Defaults: map[string]any{
			"description":         "",
			"reservationType":     "SHARED",
			"haMode":              "ELASTIC_N_PLUS_M_BUFFER",
			"maxVirtualServices":  100,
			"supportedFeatureSet": "PREMIUM",
		},
		Prepare: func(r *api.Request, body map[string]any, _ *store.Object) error {
			backing, _ := body["serviceEngineGroupBacking"].(map[string]any)
			ref, err := gateways.DocumentReference(r.Session, r.Cloud.Store, cloudPath, "LOAD_BALANCER_CLOUD_VIEW",
				store.RefID(backing, "loadBalancerCloudRef"))
			if err == nil {
				backing["loadBalancerCloudRef"] = ref
			}
			return err
		},
		Free: func(s *cloud.Cloud, d *store.Object) error {
			if len(assignmentsOf(s.Store.Documents, d.ID(), "")) > 0 {
				return documents.InUse("service engine group", store.Text(d.Body, "name"), "an edge gateway")
			}
			return nil
		},
		Show: func(r *api.Request, d *store.Object, out map[string]any) {
			reserved := 0
			for _, a := range assignmentsOf(r.Cloud.Store.Documents, d.ID(), "") {
				reserved += documents.Number(a.Body["minVirtualServices"])
			}
			out["status"] = documents.Realization(r.Cloud.Tasks, store.Bare(d.ID()), d.Failed)
			out["numDeployedVirtualServices"] = deployedServices(r.Cloud.Store.Documents, d.ID(), "")
			out["reservedVirtualServices"] = reserved
			out["overAllocated"] = false
		},
	}
}

// maxServices returns the maximum number of virtual services on a service engine group.
func maxServices(engines *store.Object) int {
	return documents.Number(engines.Body["maxVirtualServices"])
}

// LoadBalancing computes the state of load balancers, their pools and service engine groups.
type LoadBalancing struct{ cloud *cloud.Cloud }

// BalancingOf returns the load balancing of a cloud.
func BalancingOf(c *cloud.Cloud) LoadBalancing { return LoadBalancing{cloud: c} }

// checkUnusedIn refuses to delete an object that documents at a path refer to.
func (lb LoadBalancing) checkUnusedIn(path, kind string, d *store.Object, object, ref string) error {
	for _, x := range lb.cloud.Store.Documents[path] {
		if o, _ := x.Body[object].(map[string]any); store.RefID(o, ref) == d.ID() {
			return documents.InUse(kind, store.Text(d.Body, "name"), store.Text(x.Body, "name"))
		}
	}
	return nil
}

func listImportableClouds(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("LOAD_BALANCER_CLOUD_VIEW"); err != nil {
		return nil, err
	}
	if r.Cloud.Store.Documents.Find(controllerPath, r.FilterValue("_context")) == nil {
		return nil, store.Forbidden("LOAD_BALANCER_CONTROLLER_VIEW", r.FilterValue("_context"))
	}
	id := "cloud-" + r.Cloud.IDs.Named("albCloud", importableCloud)
	imported := slices.ContainsFunc(r.Cloud.Store.Documents[cloudPath], func(d *store.Object) bool {
		backing, _ := d.Body["loadBalancerCloudBacking"].(map[string]any)
		return store.Text(backing, "backingId") == id
	})
	return r.Page([]any{map[string]any{
		"id":                id,
		"displayName":       importableCloud,
		"alreadyImported":   imported,
		"networkPoolRef":    api.Ref("networkPool", vdcs.PoolID(r.Cloud), vdcs.PoolName(r.Cloud)),
		"transportZoneName": vdcs.ProviderPool,
	}})
}

func listImportableEngines(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("SERVICE_ENGINE_GROUP_VIEW"); err != nil {
		return nil, err
	}
	if r.Cloud.Store.Documents.Find(cloudPath, r.FilterValue("_context")) == nil {
		return nil, store.Forbidden("LOAD_BALANCER_CLOUD_VIEW", r.FilterValue("_context"))
	}
	return r.CursorPage([]any{map[string]any{
		"id":          "serviceenginegroup-" + r.Cloud.IDs.Named("albEngines", importableEngines),
		"displayName": importableEngines,
		"haMode":      "ELASTIC_N_PLUS_M_BUFFER",
	}})
}

// syncEngines synchronizes a service engine group with its controller. This is a no-op, as nothing changes in the
// simulated controller.
func syncEngines(r *api.Request) (*api.Response, error) {
	d, err := engineCollection().FindScoped(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	return r.Done(store.Entity{Kind: "serviceEngineGroup", ID: store.Bare(d.ID()), Name: store.Text(d.Body, "name")}), nil
}

// SeedBalancers creates the load balancing objects of the model: a controller with a cloud, the service engine groups,
// and their assignments to gateways.
func SeedBalancers(s *cloud.Cloud) {
	engines := s.Store.Model.ServiceEngineGroups
	if len(engines) == 0 {
		return
	}
	named := func(path, kind, name string, body map[string]any) *store.Object {
		body["id"] = store.URN(kind, s.IDs.Named(kind, name))
		body["name"] = name
		body["description"] = ""
		return s.Store.Documents.Add(path, "", body)
	}
	controller := named(controllerPath, "loadBalancerController", "alb1",
		map[string]any{
			"url":         "https://alb1.example",
			"username":    "admin",
			"password":    "password",
			"licenseType": "", // since VCD 10.4, service engine groups define the features
			"version":     "22.1.5",
		})
	cloud := named(cloudPath, "loadBalancerCloud", "alb1-cloud", map[string]any{
		"networkPoolRef": api.Ref("networkPool", vdcs.PoolID(s), vdcs.PoolName(s)),
		"loadBalancerCloudBacking": map[string]any{
			"backingId":                 "cloud-" + s.IDs.Named("albCloud", importableCloud),
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
	for o := range s.Store.Model.Orgs {
		for v := range s.Store.Model.Orgs[o].VDCs {
			for g := range s.Store.Model.Orgs[o].VDCs[v].EdgeGateways {
				seedAssignments(s, s.Store.Model.Orgs[o].ID, &s.Store.Model.Orgs[o].VDCs[v].EdgeGateways[g])
			}
		}
	}
}

func seedAssignments(s *cloud.Cloud, orgID string, g *store.EdgeGateway) {
	if g.LoadBalancer == nil {
		return
	}
	for _, name := range g.LoadBalancer.Groups {
		i := slices.IndexFunc(s.Store.Documents[enginePath],
			func(d *store.Object) bool { return store.Text(d.Body, "name") == name })
		if i < 0 {
			continue
		}
		engines := s.Store.Documents[enginePath][i]
		d := s.Store.Documents.Add(documents.AssignmentPath, orgID, map[string]any{
			"id": store.URN("serviceEngineGroupAssignment",
				s.IDs.Named("serviceEngineGroupAssignment", g.ID+name)),
			"gatewayRef":            api.Ref("gateway", g.ID, g.Name),
			"serviceEngineGroupRef": map[string]any{"id": engines.ID(), "name": name},
		})
		d.Parent = g.ID
	}
}
