package vcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

const entitiesPath = "/cloudapi/1.0.0/entities/"

// An Entity is a runtime defined entity.
type Entity struct {
	Ref

	Type    string // URN of its type
	State   string // PRE_CREATED, RESOLVED or RESOLUTION_ERROR
	ETag    string // of this version
	Content json.RawMessage
	raw     object
}

// Entities are the runtime defined entities.
type Entities struct{ *client }

// Get reads a runtime defined entity by its URN. Its content is as VCD wrote it. It takes a right on the entity's type.
func (e *Entities) Get(ctx context.Context, id string) (Entity, error) {
	entity, err := e.exchange(ctx, call{method: http.MethodGet, path: entitiesPath + url.PathEscape(id), json: true})
	if err != nil {
		return Entity{}, fmt.Errorf("reading entity %s: %w", id, err)
	}
	return entity, nil
}

func (e *Entities) exchange(ctx context.Context, what call) (Entity, error) {
	got, err := e.do(ctx, what)
	if err != nil {
		return Entity{}, err
	}
	return entityFrom(got)
}

func entityFrom(got answer) (Entity, error) {
	var raw object
	if err := decodeJSON(got.body, &raw); err != nil {
		return Entity{}, err
	}
	return Entity{
		Ref: Ref{ID: raw.textOf("id"), Name: raw.textOf("name")}, Type: raw.textOf("entityType"),
		State: raw.textOf("state"),
		ETag:  got.header.Get("ETag"), Content: raw["entity"], raw: raw,
	}, nil
}

// Update writes the content of an entity that was read, unless it was changed since: then the error wraps
// [ErrChanged]. What VCD wrote beside the content goes back as it came. It returns the new version.
func (e *Entities) Update(ctx context.Context, read Entity, content json.RawMessage) (Entity, error) {
	o := object{}
	for field, value := range read.raw {
		o[field] = value
	}
	o["entity"] = content
	written, err := e.exchange(ctx, call{
		method: http.MethodPut, path: entitiesPath + url.PathEscape(read.ID), json: true, content: o,
		ifMatch: read.ETag,
	})
	if err != nil {
		return Entity{}, fmt.Errorf("writing entity %s: %w", read.ID, err)
	}
	return written, nil
}
