// SPDX-License-Identifier: Apache-2.0

package cloud

import "sync"

// A Guard is a lock that counts how often it was taken. If the count is the same as before, nothing has changed since.
type Guard struct {
	mu    sync.Mutex
	taken uint64
}

// Lock locks the guard.
func (g *Guard) Lock() {
	g.mu.Lock()
	g.taken++
}

// Unlock unlocks the guard.
func (g *Guard) Unlock() { g.mu.Unlock() }

// Taken returns how often the guard was locked. The caller holds it.
func (g *Guard) Taken() uint64 { return g.taken }
