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

// An Access is the list of those an entity is shared with.
type Access struct {
	ID       string // of the entity
	Everyone string // level; empty: not shared with all
	Grants   []Grant
}

// A Grant is the level a user or an organization has.
type Grant struct{ Kind, ID, Name, Level string }

// An APIClient is what registered for tokens: a user's API token or a service account.
type APIClient struct {
	ID, Name       string
	OrgID          string
	UserID, User   string
	Role           string
	ServiceAccount bool
	Status         string // of service accounts: CREATED, REQUESTED, GRANTED, ACTIVE
	Token          string
}

// snapshotDocuments copies what is neither vApp, VM, disk, task nor session.
func (s *store) snapshotDocuments(out *State) {
	for _, a := range sorted(s.affinity) {
		out.Affinity = append(out.Affinity, a.clone())
	}
	for _, u := range sorted(s.uploads) {
		out.Uploads = append(out.Uploads, u.clone())
	}
	out.Metadata = map[string]map[string]Metadata{}
	for id, m := range s.metadata {
		out.Metadata[id] = maps.Clone(m)
	}
	for _, path := range slices.Sorted(maps.Keys(s.documents)) {
		for _, d := range s.documents[path] {
			body, _ := json.Marshal(d.body)
			out.Documents = append(out.Documents,
				Document{Path: path, ID: d.id(), OrgID: d.orgID, Parent: d.parent, Body: body, Version: d.version})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.access)) {
		a := Access{ID: id, Everyone: s.access[id].everyone}
		for _, g := range s.access[id].subjects {
			a.Grants = append(a.Grants, Grant{Kind: g.kind, ID: g.id, Name: g.name, Level: g.level})
		}
		out.Access = append(out.Access, a)
	}
	for _, c := range s.clients {
		out.APIClients = append(out.APIClients, APIClient{
			ID:             c.id,
			Name:           c.name,
			OrgID:          c.orgID,
			UserID:         c.userID,
			User:           c.user,
			Role:           c.role,
			ServiceAccount: c.service,
			Status:         c.status,
			Token:          c.token,
		})
	}
}
