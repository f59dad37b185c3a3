// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A tracker records all vApps and VMs that ever existed in a simulator, by ownership marker. It observes the state
// before and after each request, so that it misses no object that a request creates or deletes.
type tracker struct {
	mu     sync.Mutex
	marked map[string]map[string]bool // IDs by kind and marker
}

// tracker starts a tracker that observes the simulator of the site.
func (s *site) tracker() *tracker {
	w := &tracker{marked: map[string]map[string]bool{}}
	s.SetGate(func(context.Context, vcdsim.Moment, vcdsim.Request) bool {
		w.observe(s.State())
		return true
	})
	return w
}

func (w *tracker) observe(state vcdsim.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range state.VApps {
		w.note("vApp "+state.VApps[i].Description, state.VApps[i].ID)
	}
	for i := range state.VMs {
		w.note("VM "+state.VMs[i].Description, state.VMs[i].ID)
	}
}

func (w *tracker) note(what, id string) {
	if w.marked[what] == nil {
		w.marked[what] = map[string]bool{}
	}
	w.marked[what][id] = true
}

// created returns the number of vApps and VMs that were ever created.
func (w *tracker) created() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, ids := range w.marked {
		n += len(ids)
	}
	return n
}

// duplicates lists the markers of more than one object, with the IDs of the objects.
func (w *tracker) duplicates() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var more []string
	for what, ids := range w.marked {
		if len(ids) > 1 {
			more = append(more, fmt.Sprintf("%s: %v", what, slices.Sorted(maps.Keys(ids))))
		}
	}
	return more
}
