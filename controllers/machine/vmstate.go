// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A vmState is the recorded VM as VCD showed it. It is kept between passes.
type vmState struct {
	row  *vcd.VMRecord // in the inventory of this pass; nil: not listed, or not queried
	full *vcd.VM       // as read last, with what our own tasks changed since

	askedMetadata map[string]string // the guest's metadata that was written last
	askedDiskMiB  int64             // the size that its first disk was requested to have
	askedHardware hardware          // what was requested last
	consolidated  bool              // by this process, and nothing failed since

	current  bool              // full holds in this pass
	outdated bool              // full does not hold after this pass
	readWith *session.Machines // what full was read with
	readRow  vcd.VMRecord      // the row when full was read
	readNext time.Time         // when to read full again
	expires  time.Time         // when full no longer holds for a machine that is being created
}

// begin starts a pass, which has observed nothing yet.
func (v *vmState) begin() {
	v.row = nil
	v.current = false
	if v.outdated {
		v.full = nil
		v.readWith = nil
		v.outdated = false
		v.consolidated = false
	}
}

// now returns the VM in full if that holds in this pass.
func (v *vmState) now() *vcd.VM {
	if !v.current {
		return nil
	}
	return v.full
}

// known returns the VM as it was read last; nil if this process did not read it since a step failed.
func (v *vmState) known() *vcd.VM {
	if v.outdated {
		return nil
	}
	return v.full
}

// use makes what was read earlier hold in this pass, if it is VM id and was read with the same credentials.
func (v *vmState) use(id string, client *session.Machines) bool {
	known := v.known()
	v.current = known != nil && known.ID == id && v.readWith == client
	return v.current
}

// expire makes the next pass of a machine that is being created read the VM again. What our own tasks changed stays
// known until then.
func (v *vmState) expire() { v.expires = time.Time{} }

// forget makes the next pass read the VM again.
func (v *vmState) forget() { v.outdated = true }

// isOff reports whether the inventory of this pass shows the VM powered off.
func (v *vmState) isOff() bool {
	return v.row != nil && v.row.Status == vcd.StatusPoweredOff
}
