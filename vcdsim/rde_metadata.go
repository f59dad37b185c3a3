// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// entityMetadataRoutes serve metadata of entities; each entry has a namespace and a key, which never change.
func entityMetadataRoutes(add addRoute) {
	const base = "/cloudapi/" + entitiesPath + "/{id}/metadata"
	add("GET", base, with(entityByID, listEntries), latencyCloudAPI)
	add("POST", base, with(entityByID, createEntry), latencyWrite)
	add("GET", base+"/{entry}", with2(entryByID, getEntry), latencyCloudAPI)
	add("PUT", base+"/{entry}", with2(entryByID, putEntry), latencyWrite)
	add("DELETE", base+"/{entry}", with2(entryByID, deleteEntry), latencyWrite)
}

// entriesPath is where the metadata of an entity is kept.
func entriesPath(entity *store.Object) string { return entitiesPath + "/" + entity.ID() + "/metadata" }

func entryByID(r *request) (entity, entry *store.Object, err error) {
	if entity, err = entityByID(r); err != nil {
		return nil, nil, err
	}
	for _, d := range r.cloud.store.Documents[entriesPath(entity)] {
		if d.ID() == r.vars["entry"] {
			return entity, d, nil
		}
	}
	return nil, nil, store.Forbidden("METADATA_VIEW", r.vars["entry"])
}

// entryKey is the namespace and the key of an entry.
func entryKey(body map[string]any) (namespace, key string) {
	pair, _ := body["keyValue"].(map[string]any)
	return store.Text(pair, "namespace"), store.Text(pair, "key")
}

// readEntry reads an entry of an entity; old is the one that it replaces.
func readEntry(r *request, entity, old *store.Object) (map[string]any, error) {
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	namespace, key := entryKey(body)
	if key == "" {
		return nil, store.BadRequest("The field keyValue.key must not be empty.")
	}
	for _, d := range r.cloud.store.Documents[entriesPath(entity)] {
		if n, k := entryKey(d.Body); d != old && n == namespace && k == key {
			return nil, store.BadRequest("There is metadata with the key %q in the namespace %q.", key, namespace)
		}
	}
	if old != nil {
		if n, k := entryKey(old.Body); n != namespace || k != key {
			return nil, store.BadRequest("Namespace and key of metadata cannot be changed.")
		}
	}
	return body, nil
}

func listEntries(r *request, entity *store.Object) (*response, error) {
	return r.pageOf(r.cloud.store.Documents[entriesPath(entity)])
}

func createEntry(r *request, entity *store.Object) (*response, error) {
	body, err := readEntry(r, entity, nil)
	if err != nil {
		return nil, err
	}
	body["id"] = store.URN("metadata", r.cloud.ids.Next("metadata"))
	d := r.cloud.store.Documents.Add(entriesPath(entity), entity.OrgID, body)
	res := entityResponse(d)
	res.status = http.StatusCreated
	return res, nil
}

func getEntry(_ *request, _, entry *store.Object) (*response, error) {
	return entityResponse(entry), nil
}

func putEntry(r *request, entity, entry *store.Object) (*response, error) {
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

func deleteEntry(r *request, entity, entry *store.Object) (*response, error) {
	path := entriesPath(entity)
	r.cloud.store.Documents[path] = slices.DeleteFunc(slices.Clone(r.cloud.store.Documents[path]),
		func(d *store.Object) bool { return d == entry })
	id := strings.TrimPrefix(entity.ID(), "urn:vcloud:entity:")
	return r.done(store.Entity{Kind: "entity", ID: id, Name: store.Text(entity.Body, "name")}), nil
}
