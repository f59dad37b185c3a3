// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Document calls f with the live object of the JSON API that has this ID, such as a pool or a NAT rule. It reports
// whether the object exists.
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

// AddDocument adds an object of the JSON API without a request. path is the path of its collection without
// /cloudapi/; org and parent are the IDs of its organization and of the gateway or other object that it belongs to. It
// returns the object's ID, which contains kind.
func (e *Editor) AddDocument(path, kind, org, parent string, body map[string]any) string {
	if store.Text(body, "id") == "" {
		body["id"] = store.URN(kind, e.cloud.IDs.Next(kind))
	}
	e.cloud.Store.Documents.Add(path, store.Bare(org), body).Parent = store.Bare(parent)
	return store.Text(body, "id")
}

// DeleteDocument removes an object of the JSON API, even if others refer to it, and reports whether it existed.
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

// DeleteGateway removes an edge gateway with all its objects, even if others refer to it, and reports whether it
// existed.
func (e *Editor) DeleteGateway(id string) bool {
	return gateways.RemoveGateway(e.cloud, store.Bare(id))
}
