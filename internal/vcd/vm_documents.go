// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"maps"
	"sync"
	"time"
)

// documentAge is how long the document of a VM may be used as the base of a change.
const documentAge = 5 * time.Second

// documents caches the documents of VMs that are powered off, so that a change immediately after a read does not need
// to read again. A running VM is always read again, because its guest also writes extra configuration.
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

// take returns a document and removes it from the cache, whether or not it is new enough, because the next request
// makes it outdated.
func (d *documents) take(id string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byID[id]
	delete(d.byID, id)
	return found.raw, ok && d.clock.Now().Sub(found.read) <= documentAge
}
