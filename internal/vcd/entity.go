// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const entitiesPath = "/cloudapi/1.0.0/entities/"

// States of entities.
const (
	EntityPreCreated = "PRE_CREATED"
	EntityResolved   = "RESOLVED"
)

// An Entity is a runtime defined entity.
type Entity struct {
	Ref

	Type       string // URN of its type
	ExternalID string
	State      string // PRE_CREATED, RESOLVED or RESOLUTION_ERROR
	Org        Ref
	ETag       string // ETag of this version
	Content    json.RawMessage
	raw        wire.Object
}

// Entities is the client for runtime defined entities.
type Entities struct {
	client  *api.Client
	lookups *cache.Cache
}

// Get reads a runtime defined entity by its URN. Its content is unchanged. Get requires a right for the type of the
// entity.
func (e *Entities) Get(ctx context.Context, id string) (Entity, error) {
	entity, err := e.exchange(ctx, api.Call{Method: http.MethodGet, Path: entitiesPath + url.PathEscape(id), JSON: true})
	if err != nil {
		return Entity{}, fmt.Errorf("reading entity %s: %w", id, err)
	}
	return entity, nil
}

func (e *Entities) exchange(ctx context.Context, what api.Call) (Entity, error) {
	got, err := e.client.Do(ctx, what)
	if err != nil {
		return Entity{}, err
	}
	return entityFrom(got)
}

func entityFrom(got transport.Answer) (Entity, error) {
	var raw wire.Object
	if err := wire.DecodeJSON(got.Body, &raw); err != nil {
		return Entity{}, err
	}
	var org wire.Ref
	_ = json.Unmarshal(raw["org"], &org) // optional
	return Entity{
		Ref:        Ref{ID: raw.Text("id"), Name: raw.Text("name")},
		Type:       raw.Text("entityType"),
		ExternalID: raw.Text("externalId"),
		State:      raw.Text("state"),
		Org:        Ref(org),
		ETag:       got.Header.Get("ETag"),
		Content:    raw["entity"],
		raw:        raw,
	}, nil
}

// Update writes the content of an entity and returns the new version. If the entity was changed after it was read, the
// error wraps [ErrChanged]. All other fields are sent as VCD returned them.
func (e *Entities) Update(ctx context.Context, read Entity, content json.RawMessage) (Entity, error) {
	o := wire.Object{}
	for field, value := range read.raw {
		o[field] = value
	}
	o["entity"] = content
	written, err := e.exchange(ctx, api.Call{
		Method:  http.MethodPut,
		Path:    entitiesPath + url.PathEscape(read.ID),
		JSON:    true,
		Content: o,
		IfMatch: read.ETag,
	})
	if err != nil {
		return Entity{}, fmt.Errorf("writing entity %s: %w", read.ID, err)
	}
	return written, nil
}

// entityTypesPath is the path of entity types, below which entities are created.
const entityTypesPath = "/cloudapi/1.0.0/entityTypes"

// An EntityKind identifies all versions of an entity type.
type EntityKind struct{ Vendor, NSS string }

// Types returns the visible versions of an entity kind, such as 1.1.0. Before 10.6, VCD returns none to a tenant.
func (e *Entities) Types(ctx context.Context, kind EntityKind) ([]string, error) {
	return cache.Lookup(ctx, e.lookups, cache.Key("entityTypes", kind.Vendor, kind.NSS),
		func(ctx context.Context) ([]string, error) {
			found, err := api.ListAll[wireEntityType](ctx, e.client, api.Listing{
				Path:  entityTypesPath,
				What:  "types of entities",
				Terms: []fiql.Term{fiql.Is("vendor", kind.Vendor), fiql.Is("nss", kind.NSS)},
			})
			var versions []string
			for _, t := range found {
				if t.Vendor == kind.Vendor && t.NSS == kind.NSS {
					versions = append(versions, t.Version)
				}
			}
			return versions, err
		})
}

type wireEntityType struct {
	ID      string `json:"id"`
	Vendor  string `json:"vendor"`
	NSS     string `json:"nss"`
	Version string `json:"version"`
}

func (w wireEntityType) Key() string { return w.ID }

// Find returns the entities with a name and an external ID, of all versions of a kind.
func (e *Entities) Find(ctx context.Context, kind EntityKind, name, externalID string) ([]Ref, error) {
	// A version in the path matches all versions that start with it.
	path := entitiesPath + "types/" + url.PathEscape(kind.Vendor) + "/" + url.PathEscape(kind.NSS) + "/1"
	found, err := api.ListAll[wireEntity](ctx, e.client, api.Listing{
		Path:  path,
		What:  "entities",
		Terms: []fiql.Term{fiql.Is("name", name)},
		Sort:  "name",
	})
	var hits []Ref
	for _, entity := range found {
		if entity.Name == name && entity.ExternalID == externalID {
			hits = append(hits, Ref{ID: entity.ID, Name: entity.Name})
		}
	}
	return hits, err
}

type wireEntity struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	ExternalID string `json:"externalId"`
}

type wireListedEntity struct {
	wire.Ref

	Type    string          `json:"entityType"`
	State   string          `json:"state"`
	Content json.RawMessage `json:"entity"`
}

// OfType lists the visible entities of a type, of all versions that start with version.
func (e *Entities) OfType(ctx context.Context, vendor, namespace, version string) ([]Entity, error) {
	return api.ListAs(ctx, e.client, api.Listing{
		Path: entitiesPath + "types/" + url.PathEscape(vendor) + "/" + url.PathEscape(namespace) + "/" +
			url.PathEscape(version),
		What: "entities",
		Of:   " of type " + vendor + ":" + namespace,
	}, func(w *wireListedEntity) Entity {
		return Entity{Ref: refOf(&w.Ref), Type: w.Type, State: w.State, Content: w.Content}
	})
}

func (w wireEntity) Key() string { return w.ID }

// An EntitySpec describes a new entity.
type EntitySpec struct {
	Type       string // URN
	Name       string
	ExternalID string // by which [Entities.Find] finds the entity
	Content    json.RawMessage
}

// Create creates an entity and returns its URN. The caller must then resolve the entity. The URN is empty if the entity
// was created but VCD did not return its URN; [Entities.Find] finds it then. Create requires full access to the type.
func (e *Entities) Create(ctx context.Context, spec EntitySpec) (id string, err error) {
	task, err := startJSON(ctx, e.client, http.MethodPost, entityTypesPath+"/"+url.PathEscape(spec.Type), map[string]any{
		"name":       spec.Name,
		"externalId": spec.ExternalID,
		"entity":     spec.Content,
	})
	if err != nil {
		return "", failure.Wrap(err, "creating entity", spec.Name)
	}
	var doc types.Task // the task runs until the entity is resolved
	if task.ID != "" {
		_ = e.client.GetXML(ctx, urn.Path(urn.Task, task.ID), &doc) // on failure, Find finds the entity
	}
	if doc.Owner != nil && entityURN.MatchString(doc.Owner.ID) {
		return doc.Owner.ID, nil
	}
	return entityURN.FindString(strings.TrimRight(doc.Operation, ")")), nil
}

// entityURN matches the URN of an entity at the end of a text.
var entityURN = regexp.MustCompile(`urn:vcloud:entity:[A-Za-z0-9]+:[A-Za-z0-9]+:` + urn.UUIDPattern.String() + `$`)

// Resolve makes VCD validate an entity against the schema of its type. The problem describes a mismatch, and is empty
// if the entity is valid.
func (e *Entities) Resolve(ctx context.Context, id string) (problem string, err error) {
	got, err := e.client.Do(ctx, api.Call{
		Method: http.MethodPost,
		Path:   entitiesPath + url.PathEscape(id) + "/resolve",
		JSON:   true,
	})
	var resolved struct {
		State   string `json:"state"`
		Message string `json:"message"`
	}
	if err == nil {
		err = wire.DecodeJSON(got.Body, &resolved)
	}
	if err == nil && resolved.State != EntityResolved {
		problem = cmp.Or(resolved.Message, "its state is "+resolved.State)
	}
	return problem, failure.Wrap(err, "resolving entity", id)
}

// Delete removes an entity after an attempt to resolve it, even a failed one, without a task. It requires full access
// to the type.
func (e *Entities) Delete(ctx context.Context, id string) error {
	_, err := e.client.Do(ctx, api.Call{Method: http.MethodDelete, Path: entitiesPath + url.PathEscape(id), JSON: true})
	return failure.Wrap(err, "deleting entity", id)
}

// A TypeVersion is a version of an entity type.
type TypeVersion struct{ ID, Vendor, Namespace, Version string }

type wireTypeVersion struct {
	wire.Ref

	Vendor  string `json:"vendor"`
	NSS     string `json:"nss"`
	Version string `json:"version"`
}

// TypeVersions lists the versions of an entity type on the site that are visible to the user.
func (e *Entities) TypeVersions(ctx context.Context, vendor, namespace string) ([]TypeVersion, error) {
	lines, err := api.ListAll[wireTypeVersion](ctx, e.client, api.Listing{
		Path:  "/cloudapi/1.0.0/entityTypes",
		What:  "entity types",
		Terms: []fiql.Term{fiql.Is("vendor", vendor), fiql.Is("nss", namespace)},
	})
	var found []TypeVersion
	for _, w := range lines {
		if strings.EqualFold(w.Vendor, vendor) && strings.EqualFold(w.NSS, namespace) {
			found = append(found, TypeVersion{w.ID, w.Vendor, w.NSS, w.Version})
		}
	}
	return found, readable(err)
}
