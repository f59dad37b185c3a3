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

// A Task is an asynchronous operation. What it will do is data (Work), so that a running task can be dumped.
type Task struct {
	ID            string
	Operation     string // display text: "Updating Virtual Machine web(uuid)"
	OperationName string // vappUpdateVm …
	Owner         Entity
	OrgID         string
	UserID        string
	OfUser        string // who owns the vApp it works on, or the vApp of the VM
	UserName      string
	Status        TaskStatus
	Started       time.Time
	Due           time.Time // when it ends
	Ended         time.Time
	Error         *Refusal
	Result        string // content of Result, if any
	RequestID     string
	Locks         []string // entities that are busy meanwhile
	Work          Work
	Number        int  // counts the tasks, in the order they were asked for
	Waiting       bool // queued until the organization's limits let it begin
	Cell          int  // that runs it; 0 is none in particular
	Stuck         bool // a fault rule keeps it from ending
}

func (t *Task) clone() Task {
	c := *t
	c.Locks = slices.Clone(t.Locks)
	return c
}

// Done reports whether the task has ended.
func (t *Task) Done() bool { return t.Status != TaskQueued && t.Status != TaskRunning }

// Progress is the share of the time that passed, 100 when done.
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

// An Alarm is a timer that is part of the state, so that it is in a dump; bells holds what it runs. Nothing else
// may wait for the clock.
type Alarm struct {
	Bell       string
	ID         string // of what it is about
	Generation int    // of a boot
	End        time.Time
	At         time.Time
}

// Work is what a task will do when it ends, as plain data. Op is the key of operations; the other fields are set as
// the operation needs them.
type Work struct {
	Op       string
	VApp     string
	VM       string
	Disk     string
	VMs      []string // to be made, or to be acted on
	Remove   []string // VMs to be deleted
	Networks []VAppNetwork
	Replace  bool // Networks are all networks, not further ones
	PowerOn  bool
	Power    Status // state the VMs go to
	Gently   bool   // through VMware Tools
	Name     string
	Change   *VMChange
	Lease    *Lease
	Metadata map[string]Metadata
	Forget   []string // metadata keys to remove
	DiskSpec *Disk
	Slot     DiskSlot      // where a disk is attached
	Affinity *AffinityRule // what a rule becomes
	Describe *string       // new description

	Properties map[string]Property

	// Of what cloudapi keeps as JSON.

	Document string         // its id
	Body     map[string]any // what it becomes
	Creates  bool           // the task makes its owner
}

// DropInputs drops what only the work itself needs: tasks are kept for long, and what is written to VMs is large and
// secret.
func (w *Work) DropInputs() {
	w.Networks = nil
	w.Change = nil
	w.Metadata = nil
	w.DiskSpec = nil
	w.Affinity = nil
	w.Body = nil
	w.Properties = nil
}

// A VMChange is what a reconfiguration changes; what is not set stays.
type VMChange struct {
	VM          VM   // the VM as it will be, for the parts named below
	Name        bool // and description
	Compute     bool // CPU, memory, policies, storage profile
	NICs        bool
	Networks    []VAppNetwork // that its vApp gets for its NICs
	Disks       bool
	Custom      bool
	Properties  bool
	Settings    bool              // what kind of machine it is, how it starts
	ExtraConfig map[string]string // nil: none
}

// TaskStatus is the state of a task, in VCD's words.
type TaskStatus string

// An Entity is what a task works on.
type Entity struct {
	Kind string // vapp, vm, disk
	ID   string
	Name string
	Path string // on the site, if the kind does not give it away
}

// OrgOf is the organization of a vApp, VM or disk, empty for anything else: it also sees what providers do to them.
func (s *Store) OrgOf(e Entity) string {
	if v := s.VAppOf(e); v != nil {
		return v.OrgID
	}
	if d := s.Disks[e.ID]; e.Kind == "disk" && d != nil {
		return d.OrgID
	}
	return ""
}

// VAppOf is a vApp, or the one that a VM is in; nil for anything else.
func (s *Store) VAppOf(e Entity) *VApp {
	switch e.Kind {
	case "vapp":
		return s.VApps[e.ID]
	case "vm":
		return s.Home(e.ID)
	}
	return nil
}
