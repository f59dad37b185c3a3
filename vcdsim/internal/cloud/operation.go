// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An Operation is a kind of task: its names in VCD, its duration and its effect.
type Operation struct {
	name     string // operationName
	Busy     string // name in BUSY_ENTITY
	verb     string // beginning of the display text
	duration time.Duration
	spread   float64
	run      func(s *Cloud, t *store.Task) error
	Undo     func(s *Cloud, t *store.Task) // called when the task is canceled
	Reveals  bool                          // the details of the task are the ID of the created object
}

// NewOperation returns an operation without jitter that cannot be undone. As in VCD, the text of BUSY_ENTITY is derived
// from the name.
func NewOperation(name, verb string, duration time.Duration, run func(*Cloud, *store.Task) error) Operation {
	var busy []rune
	for _, c := range name {
		if unicode.IsUpper(c) {
			busy = append(busy, '_')
		}
		busy = append(busy, unicode.ToUpper(c))
	}
	return Operation{name: name, Busy: string(busy), verb: verb, duration: duration, run: run}
}

// NewChange returns an operation on a network object, with the names that VCD would use. For example, creating URN kind
// natRule is createNatRule, CREATE_NAT_RULE and "Creating NAT Rule".
func NewChange(verb, kind, title string, run func(*Cloud, *store.Task) error) Operation {
	doing := map[string]string{"create": "Creating", "update": "Updating", "delete": "Deleting"}[verb]
	return Operation{
		name:     verb + strings.ToUpper(kind[:1]) + kind[1:],
		Busy:     strings.ToUpper(verb + "_" + strings.ReplaceAll(title, " ", "_")),
		verb:     doing + " " + title,
		duration: durationGateway,
		run:      run,
	}
}

// A Changed is a kind of entity that tasks create, update and delete. Creations and updates take effect when the task
// starts, deletions when it ends.
type Changed struct {
	Kind   string
	Title  string
	Remove func(*Cloud, *store.Task) error
}

// Changes returns the operations that create, update and delete entities of some kinds.
func Changes(kinds ...Changed) map[string]Operation {
	out := map[string]Operation{}
	for _, x := range kinds {
		out["create "+x.Kind] = NewChange("create", x.Kind, x.Title, Nothing)
		out["update "+x.Kind] = NewChange("update", x.Kind, x.Title, Nothing)
		out["delete "+x.Kind] = NewChange("delete", x.Kind, x.Title, x.Remove)
	}
	return out
}

const cloneSpread = 0.3

// BusyAs sets the text of BUSY_ENTITY.
func (o Operation) BusyAs(text string) Operation {
	o.Busy = text
	return o
}

// UndoneBy sets the function that is called when a task of the operation is canceled.
func (o Operation) UndoneBy(undo func(*Cloud, *store.Task)) Operation {
	o.Undo = undo
	return o
}

// Cloning marks an operation that copies disks, whose duration varies.
func (o Operation) Cloning(undo func(*Cloud, *store.Task)) Operation {
	o.spread = cloneSpread
	return o.UndoneBy(undo)
}

// Nothing is the run function of operations that change nothing when their task ends, for example because another event
// completes them.
func Nothing(*Cloud, *store.Task) error { return nil }

// awaitsEvent reports whether an operation has no fixed duration, because another event ends it.
func awaitsEvent(op string) bool { return op == OpCreateEntity || op == OpUpload }

// Gone returns the error of a task whose entity was removed in the meantime.
func Gone(kind, id string) error {
	return store.Refuse(http.StatusInternalServerError, store.CodeInternal, "The VCD entity %s %s no longer exists.", kind, id)
}
