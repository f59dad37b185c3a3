// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// vapps changes vApps for tasks that end.
type vapps struct{ cloud *cloud }

// vappsOf returns the vApps of a cloud.
func vappsOf(c *cloud) vapps { return vapps{cloud: c} }

// commitCompose ends compose, recompose and every change of a vApp as a whole.
func commitCompose(s *cloud, t *store.Task) error {
	w := t.Work
	v := s.store.VApps[w.VApp]
	if v == nil {
		return gone("vApp", w.VApp)
	}
	if w.Name != "" {
		v.Name = w.Name
	}
	if w.Describe != nil {
		v.Description = *w.Describe
	}
	vappsOf(s).setNetworks(v, w)
	if vappsOf(s).removeVMs(v, w.Remove) {
		return nil
	}
	for _, id := range w.VMs {
		if err := vmsOf(s).materialise(id, w.PowerOn); err != nil {
			return err
		}
	}
	if v.Status == store.Unresolved {
		v.Status = store.Resolved
		leasesOf(s).deployedChanged(v)
	}
	if w.PowerOn {
		leasesOf(s).deployedChanged(v)
	}
	return nil
}

func (va vapps) setNetworks(v *store.VApp, w store.Work) {
	switch {
	case w.Replace:
		v.Networks = w.Networks
		for _, vm := range va.cloud.store.VMsOf(v.ID) {
			vm.Disconnect(v)
		}
	default:
		for _, n := range w.Networks {
			if v.Network(n.Name) == nil {
				v.Networks = append(v.Networks, n)
			}
		}
	}
}

func undoCompose(s *cloud, t *store.Task) {
	if v := s.store.VApps[t.Work.VApp]; v != nil && v.Status == store.Unresolved {
		vappsOf(s).remove(v)
	}
}

func undoRecompose(s *cloud, t *store.Task) {
	for _, id := range t.Work.VMs {
		if vm := s.store.VMs[id]; vm != nil && vm.Status == store.Unresolved {
			vmsOf(s).remove(vm)
		}
	}
}

func commitLease(s *cloud, t *store.Task) error {
	v := s.store.VApps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	now := s.clock.Now()
	v.Lease.Runtime = t.Work.Lease.Runtime
	v.Lease.Storage = t.Work.Lease.Storage
	// Setting a lease starts it anew.
	if !v.Lease.Deployed.IsZero() {
		v.Lease.Deployed = now
	}
	if !v.Lease.Stopped.IsZero() {
		v.Lease.Stopped = now
	}
	leasesOf(s).watch(v)
	return nil
}

func commitDeleteVApp(s *cloud, t *store.Task) error {
	v := s.store.VApps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	vappsOf(s).remove(v)
	return nil
}

// removeVMs removes VMs of a vApp, and reports whether the vApp went with them.
func (va vapps) removeVMs(v *store.VApp, ids []string) (goneToo bool) {
	for _, id := range ids {
		if vm := va.cloud.store.VMs[id]; vm != nil {
			vmsOf(va.cloud).remove(vm)
		}
	}
	return len(ids) > 0 && va.removeEmptied(v)
}

// removeEmptied removes the vApp of a standalone VM that is gone, and reports whether it did.
func (va vapps) removeEmptied(v *store.VApp) bool {
	if v == nil || !v.AutoNature || len(va.cloud.store.VMsOf(v.ID)) > 0 {
		return false
	}
	va.remove(v)
	return true
}

func (va vapps) remove(v *store.VApp) {
	for _, vm := range slices.Clone(va.cloud.store.VMsOf(v.ID)) {
		vmsOf(va.cloud).remove(vm)
	}
	delete(va.cloud.store.VApps, v.ID)
	delete(va.cloud.store.Children, v.ID)
	delete(va.cloud.store.Access, v.ID)
}

// locks are the entities a write to a whole vApp holds.
func (va vapps) locks(v *store.VApp) []string {
	return append([]string{v.ID}, va.vmIDs(v)...)
}

func (va vapps) vmIDs(v *store.VApp) []string {
	var out []string
	for _, vm := range va.cloud.store.VMsOf(v.ID) {
		out = append(out, vm.ID)
	}
	return out
}

// checkIdle refuses when a vApp, or, as is assumed, one of its VMs is busy.
func (va vapps) checkIdle(v *store.VApp) error {
	if va.cloud.assume.VAppWaitsForVM {
		return va.cloud.tasks.checkIdle(va.locks(v)...)
	}
	return va.cloud.tasks.checkIdle(v.ID)
}
