// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"time"
	"unicode"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Operations by key.
const (
	opCompose     = "compose"
	opRecompose   = "recompose"
	opComposeVMs  = "composeVMs"
	opInstantiate = "instantiate"
	opUpdateVApp  = "updateVApp"
	opNetworks    = "networks"
	opLease       = "lease"
	opProducts    = "products"
	opDeleteVApp  = "deleteVApp"
	opDeploy      = "deploy"
	opUndeploy    = "undeploy"
	opPowerOff    = "powerOff"
	opShutdown    = "shutdown"
	opSuspend     = "suspend"
	opReset       = "reset"
	opReboot      = "reboot"
	opUpdateVM    = "updateVM"
	opDeleteVM    = "deleteVM"
	opGuestWrite  = "guestWrite"
	opAttach      = "attach"
	opDetach      = "detach"
	opCreateDisk  = "createDisk"
	opUpdateDisk  = "updateDisk"
	opDeleteDisk  = "deleteDisk"
	opMetadata    = "metadata"
	// opCreateEntity runs until the entity is resolved.
	opCreateEntity = "createEntity"
	opInvoke       = "invoke"
	// opDone is for changes that are complete when their task begins, mostly administration.
	opDone = "done"
)

const cloneSpread = 0.3

// awaits reports whether an operation has no duration: another event ends it.
func awaits(op string) bool { return op == opCreateEntity || op == opUpload }

func gone(kind, id string) error {
	return store.Refuse(http.StatusInternalServerError, store.CodeInternal, "The VCD entity %s %s no longer exists.", kind, id)
}

// An operation is a kind of work: how VCD names it, how long it takes and what it does when it ends.
type operation struct {
	name     string // operationName
	busy     string // as BUSY_ENTITY names it
	verb     string // begins the display text
	duration time.Duration
	spread   float64
	run      func(s *cloud, t *store.Task) error
	undo     func(s *cloud, t *store.Task) // when the task is cancelled
	reveals  bool                          // the details of the task are the id of what it made
}

// newOperation returns an operation without jitter that cannot be undone. VCD derives what BUSY_ENTITY says from the
// name.
func newOperation(name, verb string, duration time.Duration, run func(*cloud, *store.Task) error) operation {
	var busy []rune
	for _, c := range name {
		if unicode.IsUpper(c) {
			busy = append(busy, '_')
		}
		busy = append(busy, unicode.ToUpper(c))
	}
	return operation{name: name, busy: string(busy), verb: verb, duration: duration, run: run}
}

// busyAs sets what BUSY_ENTITY says.
func (o operation) busyAs(text string) operation {
	o.busy = text
	return o
}

func (o operation) undoneBy(undo func(*cloud, *store.Task)) operation {
	o.undo = undo
	return o
}

// cloning marks an operation that copies disks, which takes more or less time.
func (o operation) cloning(undo func(*cloud, *store.Task)) operation {
	o.spread = cloneSpread
	return o.undoneBy(undo)
}

// nothing is the work of operations that another event completes.
func nothing(*cloud, *store.Task) error { return nil }
