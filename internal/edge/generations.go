// SPDX-License-Identifier: Apache-2.0

package edge

import "sync"

// generations are the generations of the node lists from which IP sets were written.
type generations struct {
	mu    sync.Mutex
	bySet map[string]uint64
}

// of returns the generation of a set by its name, or 0 if it is unknown.
func (g *generations) of(set string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bySet[set]
}

// record records that a set was written from a generation, or may have been, so that no older one overwrites it.
func (g *generations) record(set string, generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bySet[set] = max(g.bySet[set], generation)
}
