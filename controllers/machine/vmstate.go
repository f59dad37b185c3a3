// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A vmState caches the recorded VM as VCD showed it. It is kept between passes.
type vmState struct {
	row   *vcd.VMRecord // in the inventory of this pass; nil: not listed, or not queried
	fresh *vcd.VM       // as read in this pass; nil: not read, or a request or task of the manager may have changed it since
	full  *vcd.VM       // as last read, with later changes by the manager's tasks

	writtenMetadata   map[string]string // the guest's metadata that was last written
	requestedDiskMiB  int64             // the last requested size of its first disk
	requestedHardware hardware          // the last requested hardware
	consolidated      bool              // by this process, with no failure since

	current  bool              // full holds in this pass
	outdated bool              // full does not hold after this pass
	readWith *session.Machines // the client that read full
	readRow  vcd.VMRecord      // the row when full was read
	readNext time.Time         // when to read full again
	expires  time.Time         // when full no longer holds for a machine that is being created
}

// begin starts a pass, which has observed nothing yet.
func (v *vmState) begin() {
	v.row = nil
	v.fresh = nil
	v.current = false
	if v.outdated {
		v.full = nil
		v.readWith = nil
		v.outdated = false
		v.consolidated = false
	}
}

// now returns the full VM if it holds in this pass; otherwise nil.
func (v *vmState) now() *vcd.VM {
	if !v.current {
		return nil
	}
	return v.full
}

// known returns the VM as last read; nil if this process has not read it since a step failed.
func (v *vmState) known() *vcd.VM {
	if v.outdated {
		return nil
	}
	return v.full
}

// use makes an earlier read hold in this pass if it is of the VM with the ID and used the same credentials.
func (v *vmState) use(id string, client *session.Machines) bool {
	known := v.known()
	v.current = known != nil && known.ID == id && v.readWith == client
	return v.current
}

// expire makes the next pass of a machine that is being created read the VM again. Until then, the
// changes by the manager's tasks stay known.
func (v *vmState) expire() { v.expires = time.Time{} }

// end ends a pass. The VM as read may be large, and no later pass may rely on it.
func (v *vmState) end() { v.fresh = nil }

// changed makes the rest of the pass read the VM again, because a request or task of the manager may have changed it.
func (v *vmState) changed() { v.fresh = nil }

// forget makes the next pass read the VM again.
func (v *vmState) forget() { v.outdated = true }

// isOff reports whether the inventory of this pass shows the VM powered off.
func (v *vmState) isOff() bool {
	return v.row != nil && v.row.Status == vcd.StatusPoweredOff
}
