// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Settled knows for which VMs nothing is missing in the rules of their clusters. It lets a VM that must have a host of
// its own wait to be powered on. The zero value is usable; a restart empties it, and the next pass over the cluster
// fills it.
type Settled struct {
	mu        sync.Mutex
	byCluster map[types.UID]*settled
}

type settled struct {
	vms     map[string]bool
	waiting map[string]func() // by VM
}

// of returns what is known of a cluster. Hold the lock.
func (s *Settled) of(cluster types.UID) *settled {
	if s.byCluster == nil {
		s.byCluster = map[types.UID]*settled{}
	}
	if s.byCluster[cluster] == nil {
		s.byCluster[cluster] = &settled{waiting: map[string]func(){}}
	}
	return s.byCluster[cluster]
}

// Has reports whether nothing is missing for a VM of a cluster. If something is, wake is called once that changes.
func (s *Settled) Has(cluster types.UID, vm string, wake func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of(cluster)
	if known.vms[vm] {
		return true
	}
	known.waiting[vm] = wake
	return false
}

// Set replaces what is known of a cluster.
func (s *Settled) Set(cluster types.UID, vms []string) {
	for _, wake := range s.set(cluster, vms) {
		wake()
	}
}

// set returns what to call for the VMs that were waited for.
func (s *Settled) set(cluster types.UID, vms []string) (wake []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of(cluster)
	known.vms = map[string]bool{}
	for _, vm := range vms {
		known.vms[vm] = true
		if f := known.waiting[vm]; f != nil {
			wake = append(wake, f)
			delete(known.waiting, vm)
		}
	}
	return wake
}

// Drop forgets a cluster.
func (s *Settled) Drop(cluster types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byCluster, cluster)
}
