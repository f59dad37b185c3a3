// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Cluster returns the id of the cluster that a disk is of, as its description says: by our marker, or by nothing but
// the id, which is what VMware's CSI driver writes when it is given that. An id that a person chose could be any word,
// so that one must have a UUID in it. Empty if it is of none.
func (d NamedDisk) Cluster() string {
	if marker, ok := ParseMarker(d.Description); ok {
		return marker.Cluster
	}
	text := strings.TrimSpace(d.Description)
	if uuidPattern.MatchString(text) && !strings.ContainsAny(text, " \t\n") {
		return text
	}
	return ""
}

type wireListedEntity struct {
	wireRef

	Type    string          `json:"entityType"`
	State   string          `json:"state"`
	Content json.RawMessage `json:"entity"`
}

// OfType lists the entities of a type that the user is shown, of all versions that begin with one.
func (e *Entities) OfType(ctx context.Context, vendor, namespace, version string) ([]Entity, error) {
	return listAs(ctx, e.client, listing{
		path: entitiesPath + "types/" + url.PathEscape(vendor) + "/" + url.PathEscape(namespace) + "/" +
			url.PathEscape(version),
		what: "entities",
		of:   " of type " + vendor + ":" + namespace,
	}, func(w *wireListedEntity) Entity {
		return Entity{Ref: refOf(&w.wireRef), Type: w.Type, State: w.State, Content: w.Content}
	})
}

// Remove deletes an entity, at once.
func (e *Entities) Remove(ctx context.Context, id string) error {
	_, err := e.client.do(ctx, call{method: http.MethodDelete, path: entitiesPath + url.PathEscape(id), json: true})
	return wrapped(err, "deleting entity", id)
}
