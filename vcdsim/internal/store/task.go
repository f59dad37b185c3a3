// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"
)

// Task states.
const (
	TaskQueued   TaskStatus = "queued"
	TaskRunning  TaskStatus = "running"
	TaskSuccess  TaskStatus = "success"
	TaskError    TaskStatus = "error"
	TaskAborted  TaskStatus = "aborted"
	TaskCanceled TaskStatus = "canceled"
)

// A Task is an asynchronous operation. Its effect is stored as data (Work), so that a running task can be dumped.
type Task struct {
	ID            string
	Operation     string // display text: "Updating Virtual Machine web(uuid)"
	OperationName string // for example vappUpdateVm
	Owner         Entity
	OrgID         string
	UserID        string
	OfUser        string // owner of the vApp that it changes or that contains the VM
	UserName      string
	Status        TaskStatus
	Started       time.Time
	Due           time.Time // expected end
	Ended         time.Time
	Error         *Refusal
	Result        string // content of the Result element, if any
	RequestID     string
	Locks         []string // entities that are busy until it ends
	Work          Work
	Number        int  // sequence number in order of the requests
	Waiting       bool // queued by the limits of the organization
	Cell          int  // cell that runs it; 0 means none
	Stuck         bool // a fault rule prevents its end
}

func (t *Task) clone() Task {
	c := *t
	c.Locks = slices.Clone(t.Locks)
	return c
}

// Done reports whether the task has ended.
func (t *Task) Done() bool { return t.Status != TaskQueued && t.Status != TaskRunning }

// Progress returns the elapsed percentage of the task's duration; 100 if it has ended.
func (t *Task) Progress(now time.Time) int {
	if t.Done() {
		return 100
	}
	total := t.Due.Sub(t.Started)
	if total <= 0 {
		return 0
	}
	return int(min(99, max(1, 100*now.Sub(t.Started)/total)))
}

// An Alarm is a timer that is part of the state, so that dumps contain it. Bell selects the function that it calls.
// Nothing else may wait for the clock.
type Alarm struct {
	Bell       string
	ID         string // ID of its object
	Generation int    // generation of a boot
	End        time.Time
	At         time.Time
}

// Work is the effect of a task at its end, as plain data. Op is the key of its operation, which determines the other
// fields.
type Work struct {
	Op       string
	VApp     string
	VM       string
	Disk     string
	VMs      []string   // VMs to create or to act on
	Remove   []string   // VMs to delete
	Moves    []VMChange // VMs of other vApps to move to the vApp
	Networks []VAppNetwork
	Replace  bool // Networks replaces the networks instead of adding to them
	PowerOn  bool
	Deploy   bool   // deploy the VMs and their vApp
	Power    Status // new state of the VMs
	Gently   bool   // through VMware Tools
	Name     string
	Change   *VMChange
	Lease    *Lease
	Metadata map[string]Metadata
	Forget   []string // metadata keys to remove
	DiskSpec *Disk
	Slot     DiskSlot      // position of an attached disk
	Affinity *AffinityRule // new value of a rule
	Describe *string       // new description

	Properties map[string]Property

	// For objects that cloudapi stores as JSON.

	Document string         // ID of the object
	Body     map[string]any // new value of the object
	Creates  bool           // the task creates its owner
}

// DropInputs removes the inputs of a finished task. Tasks are kept for a long time, and data written to VMs is large
// and secret.
func (w *Work) DropInputs() {
	w.Networks = nil
	w.Change = nil
	w.Moves = nil
	w.Metadata = nil
	w.DiskSpec = nil
	w.Affinity = nil
	w.Body = nil
	w.Properties = nil
}

// A VMChange is a reconfiguration of a VM. Parts that are not selected remain unchanged.
type VMChange struct {
	VM          VM   // new values of the selected parts
	Name        bool // including the description
	Compute     bool // CPU, memory, policies, storage profile
	NICs        bool
	Networks    []VAppNetwork // networks to add to the vApp for its NICs
	Disks       bool
	Custom      bool
	Properties  bool
	Settings    bool              // hardware and boot settings
	ExtraConfig map[string]string // nil means no change
}

// A TaskStatus is the state of a task, as VCD names it.
type TaskStatus string

// An Entity identifies the object of a task.
type Entity struct {
	Kind string // vapp, vm, disk
	ID   string
	Name string
	Path string // on the site, if it cannot be derived from the kind
}

// OrgOf returns the organization of a vApp, VM or disk, or "" for other entities. It also sees the provider's tasks on
// them.
func (s *Store) OrgOf(e Entity) string {
	if v := s.VAppOf(e); v != nil {
		return v.OrgID
	}
	if d := s.Disks[e.ID]; e.Kind == "disk" && d != nil {
		return d.OrgID
	}
	return ""
}

// VAppOf returns a vApp or the vApp of a VM, or nil for other entities.
func (s *Store) VAppOf(e Entity) *VApp {
	switch e.Kind {
	case "vapp":
		return s.VApps[e.ID]
	case "vm":
		return s.Home(e.ID)
	}
	return nil
}
