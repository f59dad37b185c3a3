// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Document lets f change the live object of the JSON API with an id, such as a pool or a NAT rule, and reports whether
// there is one.
func (e *Editor) Document(id string, f func(body map[string]any)) bool {
	for _, list := range e.cloud.Store.Documents {
		for _, d := range list {
			if d.ID() == id {
				f(d.Body)
				return true
			}
		}
	}
	return false
}

// AddDocument adds an object of the JSON API without a request: to a collection, by its path without /cloudapi/, with
// the id of the organization and of the gateway or other parent it belongs to. It returns the object's id, which kind
// is part of.
func (e *Editor) AddDocument(path, kind, org, parent string, body map[string]any) string {
	if store.Text(body, "id") == "" {
		body["id"] = store.URN(kind, e.cloud.IDs.Next(kind))
	}
	e.cloud.Store.Documents.Add(path, store.Bare(org), body).Parent = store.Bare(parent)
	return store.Text(body, "id")
}

// DeleteDocument removes an object of the JSON API, whatever refers to it, and reports whether there was one.
func (e *Editor) DeleteDocument(id string) bool {
	for path, list := range e.cloud.Store.Documents {
		for _, d := range list {
			if d.ID() == id {
				e.cloud.Store.Documents.Remove(path, d)
				return true
			}
		}
	}
	return false
}

// DeleteGateway removes an edge gateway with all that is on it, whatever refers to it, and reports whether there was
// one.
func (e *Editor) DeleteGateway(id string) bool {
	return gateways.RemoveGateway(e.cloud, store.Bare(id))
}
