// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"maps"
	"sync"
	"time"
)

// documentAge is how long the document of a VM may serve as the base of a change.
const documentAge = 5 * time.Second

// documents keeps what was just read of VMs that are powered off, so that a change which follows at once need not read
// again. A running VM is always read anew: its guest writes extra configuration, too.
type documents struct {
	clock Clock

	mu   sync.Mutex
	byID map[string]document
}

type document struct {
	raw  []byte
	read time.Time
}

func newDocuments(clock Clock) *documents {
	return &documents{clock: clock, byID: map[string]document{}}
}

func (d *documents) put(id string, raw []byte, read time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	maps.DeleteFunc(d.byID, func(_ string, old document) bool { return now.Sub(old.read) > documentAge })
	d.byID[id] = document{raw, read}
}

// take returns a document and forgets it, whether or not it is new enough: what is done next makes it old.
func (d *documents) take(id string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byID[id]
	delete(d.byID, id)
	return found.raw, ok && d.clock.Now().Sub(found.read) <= documentAge
}
