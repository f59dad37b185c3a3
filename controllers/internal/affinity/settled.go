// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Settled caches which VMs are settled, that is, need no change of the rules of their clusters. A VM with a required
// rule is not powered on before it is settled. The zero value is ready to use. The cache is lost on restart, and the
// next reconcile of a cluster fills it again.
type Settled struct {
	mu        sync.Mutex
	byCluster map[types.UID]*settled
}

type settled struct {
	vms     map[string]bool
	waiting map[string]func() // wakes the waiting machine, by VM
}

// of returns the entry of a cluster, and creates it if necessary. The caller holds the lock.
func (s *Settled) of(cluster types.UID) *settled {
	if s.byCluster == nil {
		s.byCluster = map[types.UID]*settled{}
	}
	if s.byCluster[cluster] == nil {
		s.byCluster[cluster] = &settled{waiting: map[string]func(){}}
	}
	return s.byCluster[cluster]
}

// Has reports whether a VM of a cluster is settled. If it is not, wake is called once when it becomes settled.
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

// Set replaces the settled VMs of a cluster, and wakes the machines that wait for any of them.
func (s *Settled) Set(cluster types.UID, vms []string) {
	for _, wake := range s.set(cluster, vms) {
		wake()
	}
}

// set replaces the settled VMs of a cluster and returns the functions to call, without the lock, for VMs that became
// settled.
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

// Drop removes the entry of a cluster. It wakes no machines.
func (s *Settled) Drop(cluster types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byCluster, cluster)
}
