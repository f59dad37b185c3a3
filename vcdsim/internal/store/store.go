// SPDX-License-Identifier: Apache-2.0

// Package store holds everything that is simulated: the initial model, the entities that requests create, and lookups.
// It is only data: it does not know requests, time or the rights of callers.
package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Store is the live state. The simulator's lock guards everything in it. Dumps contain it as JSON, except for derived
// fields.
type Store struct {
	Model      Model
	VApps      map[string]*VApp
	VMs        map[string]*VM
	Disks      map[string]*Disk
	Tasks      map[string]*Task
	Sessions   map[string]*Session            // by token
	Locks      map[string]string              // entity ID to task ID
	Metadata   map[string]map[string]Metadata // metadata of model objects, by ID
	Affinity   map[string]*AffinityRule       // by id
	Uploads    map[string]*Upload             // by id
	Documents  Objects
	Access     map[string]Access // by ID of the shared entity
	Clients    []*APIClient      // oldest first
	Alarms     map[int]Alarm     // by number
	AlarmCount int

	Children map[string][]*VM `json:"-"` // VMs by vApp ID, in order of creation
	Order    []PlacedVM       `json:"-"` // all VMs, sorted by ID
}

// A PlacedVM is a VM with its vApp. Queries over all VMs decide by the vApp which VMs are visible.
type PlacedVM struct {
	VM   *VM
	VApp *VApp
}

// MarshalJSON implements json.Marshaler.
func (s *Store) MarshalJSON() ([]byte, error) {
	form := storedForm{plainStore: (*plainStore)(s), Children: map[string][]string{}}
	for vapp, vms := range s.Children {
		for _, vm := range vms {
			form.Children[vapp] = append(form.Children[vapp], vm.ID)
		}
	}
	return json.Marshal(form)
}

// UnmarshalJSON implements json.Unmarshaler. Unknown fields are errors, and so is a mismatch between the VMs and the
// children of the vApps.
func (s *Store) UnmarshalJSON(encoded []byte) error {
	form := storedForm{plainStore: (*plainStore)(s)}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	return s.arrange(form.Children)
}

// arrange sets Children and Order from the IDs of the VMs of each vApp.
func (s *Store) arrange(children map[string][]string) error {
	s.Children = map[string][]*VM{}
	s.Order = nil
	for vapp, ids := range children {
		for _, id := range ids {
			vm := s.VMs[id]
			if vm == nil || vm.VAppID != vapp {
				return fmt.Errorf("reading the store: vApp %s has no VM %s", vapp, id)
			}
			s.Children[vapp] = append(s.Children[vapp], vm)
			s.Order = append(s.Order, PlacedVM{VM: vm, VApp: s.VApps[vapp]})
		}
	}
	if len(s.Order) != len(s.VMs) {
		return fmt.Errorf("reading the store: %d of %d VMs are in a vApp", len(s.Order), len(s.VMs))
	}
	slices.SortFunc(s.Order, func(a, b PlacedVM) int { return strings.Compare(a.VM.ID, b.VM.ID) })
	return nil
}

// AddVM adds a VM to its vApp, which is already in the store.
func (s *Store) AddVM(vm *VM) {
	s.VMs[vm.ID] = vm
	s.Children[vm.VAppID] = append(s.Children[vm.VAppID], vm)
	i, _ := slices.BinarySearchFunc(s.Order, vm.ID, compareVMID)
	s.Order = slices.Insert(s.Order, i, PlacedVM{VM: vm, VApp: s.VApps[vm.VAppID]})
}

// RemoveVM removes a VM from its vApp.
func (s *Store) RemoveVM(vm *VM) {
	delete(s.VMs, vm.ID)
	if i, found := slices.BinarySearchFunc(s.Order, vm.ID, compareVMID); found {
		s.Order = slices.Delete(s.Order, i, i+1)
	}
	s.Children[vm.VAppID] = slices.DeleteFunc(slices.Clone(s.Children[vm.VAppID]), func(x *VM) bool { return x == vm })
}

// MoveVM moves a VM to another vApp.
func (s *Store) MoveVM(vm *VM, to *VApp) {
	s.RemoveVM(vm)
	vm.VAppID = to.ID
	s.AddVM(vm)
}

// Forget removes the metadata and the access settings of an object.
func (s *Store) Forget(id string) {
	delete(s.Metadata, id)
	delete(s.Access, id)
}

// A storedForm is the format of a store in dumps. It contains the creation order of VMs, which cannot be derived.
type storedForm struct {
	*plainStore

	Children map[string][]string // VM IDs by vApp ID, in order of creation
}

// A plainStore is a store without methods.
type plainStore Store

// URN returns the URN of an object of a kind, as the API returns it.
func URN(kind, id string) string {
	if id == "" {
		return ""
	}
	return "urn:vcloud:" + kind + ":" + id
}

// Bare returns the bare ID in a reference of any form.
func Bare(ref string) string {
	ref = strings.TrimSuffix(ref, "/")
	if len(ref) < 36 {
		return ref
	}
	return ref[len(ref)-36:]
}

// NewStore returns a store with only a model.
func NewStore(m Model) *Store {
	return &Store{
		Model:     m,
		VApps:     map[string]*VApp{},
		VMs:       map[string]*VM{},
		Disks:     map[string]*Disk{},
		Tasks:     map[string]*Task{},
		Sessions:  map[string]*Session{},
		Locks:     map[string]string{},
		Children:  map[string][]*VM{},
		Metadata:  map[string]map[string]Metadata{},
		Documents: Objects{},
		Uploads:   map[string]*Upload{},
		Affinity:  map[string]*AffinityRule{},
		Access:    map[string]Access{},
		Alarms:    map[int]Alarm{},
	}
}

func compareVMID(p PlacedVM, id string) int { return strings.Compare(p.VM.ID, id) }

// Sorted returns the values of a map, sorted by key.
func Sorted[T any](m map[string]*T) []*T {
	out := make([]*T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
