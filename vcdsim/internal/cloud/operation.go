// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An Operation is a kind of work: how VCD names it, how long it takes and what it does when it ends.
type Operation struct {
	name     string // operationName
	Busy     string // as BUSY_ENTITY names it
	verb     string // begins the display text
	duration time.Duration
	spread   float64
	run      func(s *Cloud, t *store.Task) error
	Undo     func(s *Cloud, t *store.Task) // when the task is cancelled
	Reveals  bool                          // the details of the task are the id of what it made
}

// NewOperation returns an operation without jitter that cannot be undone. VCD derives what BUSY_ENTITY says from the
// name.
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

// NewChange names an operation on something of networks as VCD would: urn kind natRule is createNatRule,
// CREATE_NAT_RULE and "Creating NAT Rule".
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

// A Changed is a kind of entity that tasks make, change and remove; what tasks do to it happens at once, except for its
// removal.
type Changed struct {
	Kind   string
	Title  string
	Remove func(*Cloud, *store.Task) error
}

// Changes are the operations that make, change and remove entities of some kinds.
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

// BusyAs sets what BUSY_ENTITY says.
func (o Operation) BusyAs(text string) Operation {
	o.Busy = text
	return o
}

// UndoneBy sets what happens when a task of the operation is canceled.
func (o Operation) UndoneBy(undo func(*Cloud, *store.Task)) Operation {
	o.Undo = undo
	return o
}

// Cloning marks an operation that copies disks, which takes more or less time.
func (o Operation) Cloning(undo func(*Cloud, *store.Task)) Operation {
	o.spread = cloneSpread
	return o.UndoneBy(undo)
}

// Nothing is the work of operations that another event completes.
func Nothing(*Cloud, *store.Task) error { return nil }

// awaits reports whether an operation has no duration: another event ends it.
func awaits(op string) bool { return op == OpCreateEntity || op == OpUpload }

// Gone is the error of a task whose entity was removed meanwhile.
func Gone(kind, id string) error {
	return store.Refuse(http.StatusInternalServerError, store.CodeInternal, "The VCD entity %s %s no longer exists.", kind, id)
}
