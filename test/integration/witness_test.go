package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A witness remembers every vApp and VM that was ever seen in a simulator, by its marker. It looks at every request,
// before and after the work, so nothing that was made by a request, or went by one, escapes it.
type witness struct {
	mu     sync.Mutex
	marked map[string]map[string]bool // ids by kind and marker
}

// witness starts to watch a site's simulator.
func (s *site) witness() *witness {
	w := &witness{marked: map[string]map[string]bool{}}
	s.SetGate(func(context.Context, vcdsim.Moment, vcdsim.Request) bool {
		w.look(s.State())
		return true
	})
	return w
}

func (w *witness) look(state vcdsim.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range state.VApps {
		w.note("vApp "+state.VApps[i].Description, state.VApps[i].ID)
	}
	for i := range state.VMs {
		w.note("VM "+state.VMs[i].Description, state.VMs[i].ID)
	}
}

func (w *witness) note(what, id string) {
	if w.marked[what] == nil {
		w.marked[what] = map[string]bool{}
	}
	w.marked[what][id] = true
}

// made is how many vApps and VMs there ever were.
func (w *witness) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, ids := range w.marked {
		n += len(ids)
	}
	return n
}

// duplicates lists what was made more than once.
func (w *witness) duplicates() []string {
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
