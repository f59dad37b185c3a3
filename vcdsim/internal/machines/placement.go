// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// codePlacement is the error code for a VM that no host can run.
const codePlacement = "NO_FEASIBLE_PLACEMENT_SOLUTION"

// checkPlacement refuses to start a VM if a mandatory rule separates it from at least as many running VMs as the VDC
// has hosts.
func (m VMs) checkPlacement(vm *store.VM) error {
	v := m.cloud.Store.VApps[vm.VAppID]
	if v == nil {
		return nil
	}
	_, vdc := m.cloud.Store.VDC(v.VDCID)
	if vdc == nil || vdc.Hosts == 0 {
		return nil
	}
	for _, a := range store.Sorted(m.cloud.Store.Affinity) {
		if a.MustSeparate(vm.ID) && m.countRunning(a.VMs, vm.ID) >= vdc.Hosts {
			return store.Refuse(http.StatusInternalServerError, codePlacement,
				"There is no feasible placement for VM %q: it would violate the anti-affinity rule %q.", vm.Name,
				a.Name)
		}
	}
	return nil
}

// countRunning counts the running VMs of a list, except for one.
func (m VMs) countRunning(ids []string, except string) int {
	n := 0
	for _, id := range ids {
		if other := m.cloud.Store.VMs[id]; other != nil && id != except && other.Status == store.PoweredOn {
			n++
		}
	}
	return n
}

// Shared counts the elements of a that b also contains.
func Shared(a, b []string) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// commitAffinity creates, changes or removes an affinity rule.
func commitAffinity(s *cloud.Cloud, t *store.Task) error {
	if t.Work.Op != cloud.OpCreateAffinity && s.Store.Affinity[t.Work.Document] == nil {
		return cloud.Gone("vmAffinityRule", t.Work.Document)
	}
	if t.Work.Affinity == nil {
		delete(s.Store.Affinity, t.Work.Document)
		return nil
	}
	rule := t.Work.Affinity.Clone()
	s.Store.Affinity[rule.ID] = &rule
	return nil
}
