// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"encoding/json"
	"maps"
	"slices"
)

// A Document is an object of the JSON API (cloudapi) that is kept as it came: a role, a certificate, an entity.
type Document struct {
	Path    string // of its collection, without /cloudapi/
	ID      string // as the API shows it
	OrgID   string // whose it is
	Parent  string // bare id of the gateway, network or VDC group it belongs to, if to any
	Body    json.RawMessage
	Version int // counts the changes
}

// snapshotDocuments copies what is neither vApp, VM, disk, task nor session.
func (s *store) snapshotDocuments(out *State) {
	for _, a := range sorted(s.Affinity) {
		out.Affinity = append(out.Affinity, a.clone())
	}
	for _, u := range sorted(s.Uploads) {
		out.Uploads = append(out.Uploads, u.clone())
	}
	out.Metadata = map[string]map[string]Metadata{}
	for id, m := range s.Metadata {
		out.Metadata[id] = maps.Clone(m)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Documents)) {
		for _, d := range s.Documents[path] {
			body, _ := json.Marshal(d.Body)
			out.Documents = append(out.Documents,
				Document{Path: path, ID: d.id(), OrgID: d.OrgID, Parent: d.Parent, Body: body, Version: d.Version})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Access)) {
		a := s.Access[id]
		a.Grants = slices.Clone(a.Grants)
		out.Access = append(out.Access, a)
	}
	for _, c := range s.Clients {
		out.APIClients = append(out.APIClients, *c)
	}
}
