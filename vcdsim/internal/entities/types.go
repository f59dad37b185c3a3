// SPDX-License-Identifier: Apache-2.0

package entities

import (
	_ "embed" // the schema of CAPVCD
	"encoding/json"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// capvcdSchema has the fields and types of VMware's schema of capvcdCluster 1.1.0.
//
//go:embed capvcd.json
var capvcdSchema []byte

// TypeCollections returns the collections of interfaces and entity types.
func TypeCollections() []*documents.Collection {
	key := []string{"vendor", "nss", "version"}
	return []*documents.Collection{
		{
			Path:     access.InterfacesPath,
			Right:    "DEFINED_INTERFACE",
			Provider: true,
			Unique:   key,
			Required: slices.Concat(key, []string{"name"}),
			Fixed:    key,
			Defaults: map[string]any{"readonly": false},
			NewID:    typeURN("interface"),
		},
		{
			Path:     access.TypesPath,
			Right:    "DEFINED_ENTITY_TYPE",
			Provider: true,
			Unique:   key,
			Required: slices.Concat(key, []string{"name"}),
			Fixed:    slices.Concat(key, []string{"schema", "interfaces"}),
			Defaults: map[string]any{"readonly": false},
			NewID:    typeURN("type"),
			Check:    checkType,
			Free:     releaseType,
		},
	}
}

// typeURN returns a function that returns the ID of an interface or type from its vendor, namespace and version.
func typeURN(kind string) func(map[string]any) string {
	return func(body map[string]any) string {
		return "urn:vcloud:" + kind + ":" + store.Text(body, "vendor") + ":" + store.Text(body, "nss") + ":" + store.Text(body, "version")
	}
}

// checkType validates an entity type, and creates its rights bundle if that does not exist.
func checkType(r *api.Request, body map[string]any) error {
	schema, ok := body["schema"].(map[string]any)
	if !ok {
		return store.BadRequest("An entity type needs a JSON schema.")
	}
	if _, err := jsonschema.Compile(schema); err != nil {
		return store.BadRequest("The JSON schema of the entity type is invalid: %s", err)
	}
	list, _ := body["interfaces"].([]any)
	for _, id := range list {
		known := slices.ContainsFunc(r.Cloud.Store.Documents[access.InterfacesPath],
			func(d *store.Object) bool { return d.ID() == id })
		if !known {
			return store.Refuse(http.StatusBadRequest, "RDE_INTERFACE_NOT_FOUND", "The interface %v does not exist.", id)
		}
	}
	if bundle := typeBundle(body); !slices.ContainsFunc(r.Cloud.Store.Documents[access.BundlesPath],
		func(d *store.Object) bool { return store.Text(d.Body, "name") == bundle }) {
		d := r.Cloud.Store.Documents.Add(access.BundlesPath, r.Session.OrgID, access.RoleBody(r.Cloud, "rightsBundle", bundle))
		for _, x := range access.TypeRights(body) {
			d.Refs["rights"] = append(d.Refs["rights"], access.RightURN(r.Cloud.IDs, x.Name))
		}
	}
	return nil
}

// typeBundle returns the name of the rights bundle that VCD creates with an entity type.
func typeBundle(body map[string]any) string {
	return store.Text(body, "vendor") + ":" + store.Text(body, "nss") + " Entitlement"
}

// releaseType refuses to delete an entity type that has entities. Otherwise it removes the behaviors, the access levels
// and the rights bundle of the type.
func releaseType(s *cloud.Cloud, d *store.Object) error {
	for _, e := range s.Store.Documents[access.EntitiesPath] {
		if e.Body["entityType"] == d.Body["id"] {
			return store.Refuse(http.StatusBadRequest, "RDE_TYPE_IN_USE", "The entity type %s has entities.", d.ID())
		}
	}
	for _, kept := range []string{"/behaviors", "/behaviorAccessControls"} {
		delete(s.Store.Documents, access.TypesPath+"/"+d.ID()+kept)
	}
	bundle := typeBundle(d.Body)
	s.Store.Documents[access.BundlesPath] = slices.DeleteFunc(slices.Clone(s.Store.Documents[access.BundlesPath]),
		func(x *store.Object) bool {
			return store.Text(x.Body, "name") == bundle
		})
	return nil
}

// seedTypes adds the interfaces and types that VCD predefines.
func seedTypes(s *cloud.Cloud, org *store.Org) {
	if org.Name != store.SystemOrg {
		return
	}
	s.Store.Documents.Add(access.InterfacesPath, org.ID, map[string]any{
		"id":       "urn:vcloud:interface:vmware:k8s:1.0.0",
		"name":     "Kubernetes",
		"vendor":   "vmware",
		"nss":      "k8s",
		"version":  "1.0.0",
		"readonly": true,
	})
	s.Store.Documents.Add(access.InterfacesPath+"/urn:vcloud:interface:vmware:k8s:1.0.0/behaviors", org.ID, map[string]any{
		"id":          "urn:vcloud:behavior-interface:createKubeConfig:vmware:k8s:1.0.0",
		"ref":         "urn:vcloud:behavior-interface:createKubeConfig:vmware:k8s:1.0.0",
		"name":        "createKubeConfig",
		"description": "Creates and returns a kubeconfig",
		"execution":   map[string]any{"id": "CreateKubeConfigActivity", "type": "Activity"},
	})
	s.Store.Documents.Add(access.TypesPath, org.ID, map[string]any{
		"id":          "urn:vcloud:type:vmware:tkgcluster:1.0.0",
		"name":        "TKG Cluster",
		"vendor":      "vmware",
		"nss":         "tkgcluster",
		"version":     "1.0.0",
		"readonly":    true,
		"interfaces":  []any{"urn:vcloud:interface:vmware:k8s:1.0.0"},
		"schema":      map[string]any{"type": "object", "required": []any{"kind", "spec"}},
		"description": "Kubernetes cluster of vSphere with Tanzu",
	})
	for _, version := range []string{"1.1.0", "1.2.0", "1.3.0"} {
		var schema map[string]any
		if err := json.Unmarshal(capvcdSchema, &schema); err != nil {
			panic(err) // The schema is embedded in the program.
		}
		s.Store.Documents.Add(access.TypesPath, org.ID, map[string]any{
			"id":          "urn:vcloud:type:vmware:capvcdCluster:" + version,
			"name":        "CAPVCD Cluster",
			"vendor":      "vmware",
			"nss":         "capvcdCluster",
			"version":     version,
			"readonly":    false,
			"interfaces":  []any{"urn:vcloud:interface:vmware:k8s:1.0.0"},
			"schema":      schema,
			"description": "Kubernetes cluster of Cluster API",
		})
	}
}

// SeedDocuments adds the documents that every organization has.
func SeedDocuments(s *cloud.Cloud, org *store.Org) {
	access.SeedRoles(s, org)
	seedTypes(s, org)
	documents.SeedCertificates(s, org)
}
