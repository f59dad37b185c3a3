// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A vmState caches the recorded VM as VCD showed it. It is kept between passes.
type vmState struct {
	listed       *vcd.VMRecord // in the inventory of this pass; nil: not listed, or not queried
	readThisPass *vcd.VM       // as read in this pass; nil: not read, or a request or task of the manager may have changed it since
	cached       *vcd.VM       // as last read, with later changes by the manager's tasks

	writtenMetadata   map[string]string // the guest's metadata that was last written
	requestedDiskMiB  int64             // the last requested size of its first disk
	requestedHardware hardware          // the last requested hardware
	consolidated      bool              // by this process, with no failure since

	cacheHolds   bool              // cached holds in this pass
	dropCache    bool              // cached does not hold after this pass
	cachedBy     *session.Machines // the client that read cached
	listedAtRead vcd.VMRecord      // the row of the inventory when cached was read
	nextRead     time.Time         // when to read cached again
	cacheExpires time.Time         // when cached no longer holds for a machine that is being created
}

// beginPass starts a pass, which has observed nothing yet.
func (v *vmState) beginPass() {
	v.listed = nil
	v.readThisPass = nil
	v.cacheHolds = false
	if v.dropCache {
		v.cached = nil
		v.cachedBy = nil
		v.dropCache = false
		v.consolidated = false
	}
}

// current returns the cached VM if it holds in this pass; otherwise nil.
func (v *vmState) current() *vcd.VM {
	if !v.cacheHolds {
		return nil
	}
	return v.cached
}

// lastRead returns the VM as last read; nil if this process has not read it since a step failed.
func (v *vmState) lastRead() *vcd.VM {
	if v.dropCache {
		return nil
	}
	return v.cached
}

// reuse makes an earlier read hold in this pass if it is of the VM with the ID and used the same credentials.
func (v *vmState) reuse(id string, client *session.Machines) bool {
	known := v.lastRead()
	v.cacheHolds = known != nil && known.ID == id && v.cachedBy == client
	return v.cacheHolds
}

// expireCache makes the next pass of a machine that is being created read the VM again. Until then, the
// changes by the manager's tasks stay known.
func (v *vmState) expireCache() { v.cacheExpires = time.Time{} }

// endPass ends a pass. The VM as read may be large, and no later pass may rely on it.
func (v *vmState) endPass() { v.readThisPass = nil }

// requireReadThisPass makes the rest of the pass read the VM again, because a request or task of the manager may have
// changed it.
func (v *vmState) requireReadThisPass() { v.readThisPass = nil }

// requireReadNextPass makes the next pass read the VM again.
func (v *vmState) requireReadNextPass() { v.dropCache = true }

// isOff reports whether the inventory of this pass shows the VM powered off.
func (v *vmState) isOff() bool {
	return v.listed != nil && v.listed.Status == vcd.StatusPoweredOff
}
