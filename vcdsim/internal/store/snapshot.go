// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"maps"
	"slices"
)

// A State is a copy of everything in the simulator, sorted by ID.
type State struct {
	Model    Model
	VApps    []VApp
	VMs      []VM
	Disks    []Disk
	Uploads  []Upload
	Affinity []AffinityRule
	Tasks    []Task
	Sessions []Session
	// Metadata is the metadata of model objects, by bare ID. vApps, VMs and disks have their own fields.
	Metadata   map[string]map[string]Metadata
	Documents  []Document // by path, oldest first
	Access     []Access
	APIClients []APIClient // oldest first
}

// A Document is an object of the JSON API (cloudapi) that is stored as it was received: a role, a certificate, an
// entity.
type Document struct {
	Path    string // path of its collection, without /cloudapi/
	ID      string // in the form of the API
	OrgID   string // organization that owns it
	Parent  string // bare ID of its gateway, network or VDC group; empty if none
	Body    json.RawMessage
	Version int // number of changes
}

// Snapshot returns a copy of everything.
func (s *Store) Snapshot() State {
	out := State{Model: s.Model.Clone()}
	for _, v := range Sorted(s.VApps) {
		c := v.Clone()
		c.Status = s.Status(v)
		out.VApps = append(out.VApps, c)
	}
	for _, v := range Sorted(s.VMs) {
		c := v.Clone()
		if vapp := s.VApps[v.VAppID]; vapp != nil {
			c.VAppName = vapp.Name
		}
		out.VMs = append(out.VMs, c)
	}
	for _, d := range Sorted(s.Disks) {
		c := *d
		c.Metadata = maps.Clone(d.Metadata)
		c.AttachedTo = slices.Clone(d.AttachedTo)
		out.Disks = append(out.Disks, c)
	}
	for _, t := range Sorted(s.Tasks) {
		out.Tasks = append(out.Tasks, t.clone())
	}
	for _, x := range Sorted(s.Sessions) {
		out.Sessions = append(out.Sessions, *x)
	}
	s.snapshotDocuments(&out)
	return out
}

// snapshotDocuments copies everything except vApps, VMs, disks, tasks and sessions.
func (s *Store) snapshotDocuments(out *State) {
	for _, a := range Sorted(s.Affinity) {
		out.Affinity = append(out.Affinity, a.Clone())
	}
	for _, u := range Sorted(s.Uploads) {
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
				Document{Path: path, ID: d.ID(), OrgID: d.OrgID, Parent: d.Parent, Body: body, Version: d.Version})
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
