// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// codePlacement is the code of a VM that no host can run.
const codePlacement = "NO_FEASIBLE_PLACEMENT_SOLUTION"

// hostFor refuses to start a VM that a mandatory rule keeps apart from as many running VMs as the VDC has hosts.
func (m VMs) hostFor(vm *store.VM) error {
	v := m.cloud.Store.VApps[vm.VAppID]
	if v == nil {
		return nil
	}
	_, vdc := m.cloud.Store.VDC(v.VDCID)
	if vdc == nil || vdc.Hosts == 0 {
		return nil
	}
	for _, a := range store.Sorted(m.cloud.Store.Affinity) {
		if a.MustSeparate(vm.ID) && m.running(a.VMs, vm.ID) >= vdc.Hosts {
			return store.Refuse(http.StatusInternalServerError, codePlacement,
				"There is no feasible placement for VM %q: it would violate the anti-affinity rule %q.", vm.Name,
				a.Name)
		}
	}
	return nil
}

// running counts the VMs of a list that run, but for one.
func (m VMs) running(ids []string, except string) int {
	n := 0
	for _, id := range ids {
		if other := m.cloud.Store.VMs[id]; other != nil && id != except && other.Status == store.PoweredOn {
			n++
		}
	}
	return n
}

// Shared counts what two lists have in common.
func Shared(a, b []string) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// commitAffinity creates, changes or removes a rule.
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
