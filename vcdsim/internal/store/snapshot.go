// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"maps"
	"slices"
)

// A State is a copy of everything in the simulator, sorted by id.
type State struct {
	Model    Model
	VApps    []VApp
	VMs      []VM
	Disks    []Disk
	Uploads  []Upload
	Affinity []AffinityRule
	Tasks    []Task
	Sessions []Session
	// Metadata is that of objects of the model, by bare id; vApps, VMs and disks have their own.
	Metadata   map[string]map[string]Metadata
	Documents  []Document // by path, oldest first
	Access     []Access
	APIClients []APIClient // oldest first
}

// A Document is an object of the JSON API (cloudapi) that is kept as it came: a role, a certificate, an entity.
type Document struct {
	Path    string // of its collection, without /cloudapi/
	ID      string // as the API shows it
	OrgID   string // whose it is
	Parent  string // bare id of the gateway, network or VDC group it belongs to, if to any
	Body    json.RawMessage
	Version int // counts the changes
}

// Snapshot copies everything.
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

// snapshotDocuments copies what is neither vApp, VM, disk, task nor session.
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
