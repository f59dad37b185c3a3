// SPDX-License-Identifier: Apache-2.0

package edge

import "sync"

// generations are those of the node lists from which IP sets were written.
type generations struct {
	mu    sync.Mutex
	bySet map[string]uint64
}

// of returns the generation of a set by its name; 0 if it is not known.
func (g *generations) of(set string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bySet[set]
}

// wrote notes that a set was written from a generation, or may have been: an older one must not come after it.
func (g *generations) wrote(set string, generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bySet[set] = max(g.bySet[set], generation)
}
