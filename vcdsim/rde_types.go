// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// capvcdSchema has the fields, and their types, that VMware's schema of capvcdCluster 1.1.0 has.
//
//go:embed rde_capvcd.json
var capvcdSchema []byte

const (
	interfacesPath = "1.0.0/interfaces"
	typesPath      = "1.0.0/entityTypes"
	entitiesPath   = "1.0.0/entities"
)

func typeCollections() []*collection {
	key := []string{"vendor", "nss", "version"}
	return []*collection{
		{
			path:     interfacesPath,
			right:    "DEFINED_INTERFACE",
			provider: true,
			unique:   key,
			required: slices.Concat(key, []string{"name"}),
			fixed:    key,
			defaults: map[string]any{"readonly": false},
			newID:    typed("interface"),
		},
		{
			path:     typesPath,
			right:    "DEFINED_ENTITY_TYPE",
			provider: true,
			unique:   key,
			required: slices.Concat(key, []string{"name"}),
			fixed:    slices.Concat(key, []string{"schema", "interfaces"}),
			defaults: map[string]any{"readonly": false},
			newID:    typed("type"),
			check:    checkType,
			free:     unusedType,
		},
	}
}

// typed names interfaces and types by vendor, namespace and version.
func typed(kind string) func(map[string]any) string {
	return func(body map[string]any) string {
		return "urn:vcloud:" + kind + ":" + store.Text(body, "vendor") + ":" + store.Text(body, "nss") + ":" + store.Text(body, "version")
	}
}

func checkType(r *request, body map[string]any) error {
	schema, ok := body["schema"].(map[string]any)
	if !ok {
		return store.BadRequest("An entity type needs a JSON schema.")
	}
	if _, err := jsonschema.Compile(schema); err != nil {
		return store.BadRequest("The JSON schema of the entity type is invalid: %s", err)
	}
	list, _ := body["interfaces"].([]any)
	for _, id := range list {
		known := slices.ContainsFunc(r.cloud.store.Documents[interfacesPath],
			func(d *store.Object) bool { return d.ID() == id })
		if !known {
			return store.Refuse(http.StatusBadRequest, "RDE_INTERFACE_NOT_FOUND", "The interface %v does not exist.", id)
		}
	}
	if bundle := typeBundle(body); !slices.ContainsFunc(r.cloud.store.Documents[bundlesPath],
		func(d *store.Object) bool { return store.Text(d.Body, "name") == bundle }) {
		d := r.cloud.store.Documents.Add(bundlesPath, r.session.OrgID, roleBody(r.cloud, "rightsBundle", bundle))
		for _, x := range typeRights(body) {
			d.Refs["rights"] = append(d.Refs["rights"], rightURN(r.cloud.ids, x.name))
		}
	}
	return nil
}

// typeBundle is the rights bundle that comes with an entity type.
func typeBundle(body map[string]any) string {
	return store.Text(body, "vendor") + ":" + store.Text(body, "nss") + " Entitlement"
}

// Rights that come with an entity type, as VCD's API names them.
const (
	typeView      = "View"
	typeModify    = "Modify"
	typeFull      = "Full Access"
	typeAdminView = "Administrator View"
	typeAdminFull = "Administrator Full access"
)

// typeRight names a right of an entity type.
func typeRight(vendor, nss, right string) string { return vendor + ":" + nss + ": " + right }

// typeRights are the rights that come with an entity type.
func typeRights(body map[string]any) []right {
	var out []right
	for _, name := range []string{typeView, typeModify, typeFull, typeAdminView, typeAdminFull} {
		kind := "MODIFY"
		if name == typeView || name == typeAdminView {
			kind = "VIEW"
		}
		out = append(out, right{
			name:     typeRight(store.Text(body, "vendor"), store.Text(body, "nss"), name),
			category: "General",
			kind:     kind,
		})
	}
	return out
}

func unusedType(r *request, d *store.Object) error {
	for _, e := range r.cloud.store.Documents[entitiesPath] {
		if e.Body["entityType"] == d.Body["id"] {
			return store.Refuse(http.StatusBadRequest, "RDE_TYPE_IN_USE", "The entity type %s has entities.", d.ID())
		}
	}
	for _, kept := range []string{"/behaviors", "/behaviorAccessControls"} {
		delete(r.cloud.store.Documents, typesPath+"/"+d.ID()+kept)
	}
	bundle := typeBundle(d.Body)
	r.cloud.store.Documents[bundlesPath] = slices.DeleteFunc(slices.Clone(r.cloud.store.Documents[bundlesPath]),
		func(x *store.Object) bool {
			return store.Text(x.Body, "name") == bundle
		})
	return nil
}

// seedTypes are the interfaces and types a VCD comes with.
func seedTypes(s *cloud, org *store.Org) {
	if org.Name != store.SystemOrg {
		return
	}
	s.store.Documents.Add(interfacesPath, org.ID, map[string]any{
		"id":       "urn:vcloud:interface:vmware:k8s:1.0.0",
		"name":     "Kubernetes",
		"vendor":   "vmware",
		"nss":      "k8s",
		"version":  "1.0.0",
		"readonly": true,
	})
	s.store.Documents.Add(interfacesPath+"/urn:vcloud:interface:vmware:k8s:1.0.0/behaviors", org.ID, map[string]any{
		"id":          "urn:vcloud:behavior-interface:createKubeConfig:vmware:k8s:1.0.0",
		"ref":         "urn:vcloud:behavior-interface:createKubeConfig:vmware:k8s:1.0.0",
		"name":        "createKubeConfig",
		"description": "Creates and returns a kubeconfig",
		"execution":   map[string]any{"id": "CreateKubeConfigActivity", "type": "Activity"},
	})
	for _, version := range []string{"1.1.0", "1.2.0", "1.3.0"} {
		var schema map[string]any
		if err := json.Unmarshal(capvcdSchema, &schema); err != nil {
			panic(err) // It is part of the program.
		}
		s.store.Documents.Add(typesPath, org.ID, map[string]any{
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

// seedDocuments adds what every organization has.
func seedDocuments(s *cloud, org *store.Org) {
	seedRoles(s, org)
	seedTypes(s, org)
	seedCertificates(s, org)
}
