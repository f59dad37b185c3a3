// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// entityMetadataRoutes adds the routes of metadata of entities. Each entry has an immutable namespace and key.
func entityMetadataRoutes(add api.AddRoute) {
	const base = "/cloudapi/" + access.EntitiesPath + "/{id}/metadata"
	add("GET", base, api.With(entityByID, listEntries), cloud.LatencyCloudAPI)
	add("POST", base, api.With(entityByID, createEntry), cloud.LatencyWrite)
	add("GET", base+"/{entry}", api.With2(entryByID, getEntry), cloud.LatencyCloudAPI)
	add("PUT", base+"/{entry}", api.With2(entryByID, putEntry), cloud.LatencyWrite)
	add("DELETE", base+"/{entry}", api.With2(entryByID, deleteEntry), cloud.LatencyWrite)
}

// entriesPath returns the key of an entity's metadata in the store.
func entriesPath(entity *store.Object) string {
	return access.EntitiesPath + "/" + entity.ID() + "/metadata"
}

func entryByID(r *api.Request) (entity, entry *store.Object, err error) {
	if entity, err = entityByID(r); err != nil {
		return nil, nil, err
	}
	for _, d := range r.Cloud.Store.Documents[entriesPath(entity)] {
		if d.ID() == r.Vars["entry"] {
			return entity, d, nil
		}
	}
	return nil, nil, store.Forbidden("METADATA_VIEW", r.Vars["entry"])
}

// entryKey returns the namespace and the key of an entry.
func entryKey(body map[string]any) (namespace, key string) {
	pair, _ := body["keyValue"].(map[string]any)
	return store.Text(pair, "namespace"), store.Text(pair, "key")
}

// readEntry reads a metadata entry of an entity. The entry replaces old, which is nil for a new entry.
func readEntry(r *api.Request, entity, old *store.Object) (map[string]any, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	namespace, key := entryKey(body)
	if key == "" {
		return nil, store.BadRequest("The field keyValue.key must not be empty.")
	}
	for _, d := range r.Cloud.Store.Documents[entriesPath(entity)] {
		if n, k := entryKey(d.Body); d != old && n == namespace && k == key {
			return nil, store.BadRequest("There is metadata with the key %q in the namespace %q.", key, namespace)
		}
	}
	if old != nil {
		if n, k := entryKey(old.Body); n != namespace || k != key {
			return nil, store.BadRequest("Namespace and key of metadata cannot be changed.")
		}
	}
	return body, checkEntry(body)
}

// checkEntry refuses a value that does not match its type. It also refuses read-only metadata of the domain PROVIDER,
// as only metadata of tenants can be read-only.
func checkEntry(body map[string]any) error {
	pair, _ := body["keyValue"].(map[string]any)
	typed, _ := pair["value"].(map[string]any)
	value := typed["value"]
	var fits bool
	switch kind := store.Text(typed, "type"); kind {
	case "StringEntry":
		_, fits = value.(string)
	case "NumberEntry":
		_, fits = value.(float64)
	case "BoolEntry":
		_, fits = value.(bool)
	default:
		return store.BadRequest("The type %q of the metadata's value is invalid.", kind)
	}
	if !fits {
		return store.BadRequest("The value %v of the metadata is not a %s.", value, store.Text(typed, "type"))
	}
	if readOnly, _ := body["readOnly"].(bool); readOnly && store.Text(pair, "domain") == "PROVIDER" {
		return store.Refuse(http.StatusBadRequest, "VCD_META_CRUD_INVALID_FLAG",
			"Metadata of the domain PROVIDER cannot be read-only.")
	}
	return nil
}

func listEntries(r *api.Request, entity *store.Object) (*api.Response, error) {
	return r.PageOf(r.Cloud.Store.Documents[entriesPath(entity)])
}

func createEntry(r *api.Request, entity *store.Object) (*api.Response, error) {
	body, err := readEntry(r, entity, nil)
	if err != nil {
		return nil, err
	}
	body["id"] = store.URN("metadata", r.Cloud.IDs.Next("metadata"))
	d := r.Cloud.Store.Documents.Add(entriesPath(entity), entity.OrgID, body)
	res := entityResponse(d)
	res.Status = http.StatusCreated
	return res, nil
}

func getEntry(_ *api.Request, _, entry *store.Object) (*api.Response, error) {
	return entityResponse(entry), nil
}

func putEntry(r *api.Request, entity, entry *store.Object) (*api.Response, error) {
	if match := r.Header.Get("If-Match"); match != "" && match != etag(entry) {
		return nil, store.Refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED",
			"The metadata %s was changed by another request.", entry.ID())
	}
	body, err := readEntry(r, entity, entry)
	if err != nil {
		return nil, err
	}
	body["id"] = entry.ID()
	entry.Body = body
	entry.Version++
	return entityResponse(entry), nil
}

func deleteEntry(r *api.Request, entity, entry *store.Object) (*api.Response, error) {
	path := entriesPath(entity)
	r.Cloud.Store.Documents[path] = slices.DeleteFunc(slices.Clone(r.Cloud.Store.Documents[path]),
		func(d *store.Object) bool { return d == entry })
	id := strings.TrimPrefix(entity.ID(), "urn:vcloud:entity:")
	return r.Done(store.Entity{Kind: "entity", ID: id, Name: store.Text(entity.Body, "name")}), nil
}
