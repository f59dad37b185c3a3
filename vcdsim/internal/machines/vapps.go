// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// VApps changes vApps when tasks end.
type VApps struct{ cloud *cloud.Cloud }

// VAppsOf returns the vApps of a cloud.
func VAppsOf(c *cloud.Cloud) VApps { return VApps{cloud: c} }

// CommitCompose completes compose, recompose and all other changes of a vApp as a whole.
func CommitCompose(s *cloud.Cloud, t *store.Task) error {
	w := t.Work
	v := s.Store.VApps[w.VApp]
	if v == nil {
		return cloud.Gone("vApp", w.VApp)
	}
	if w.Name != "" {
		v.Name = w.Name
	}
	if w.Describe != nil {
		v.Description = *w.Describe
	}
	VAppsOf(s).setNetworks(v, w)
	if VAppsOf(s).removeVMs(v, w.Remove) {
		return nil
	}
	for _, id := range w.VMs {
		if err := VMsOf(s).finishCreation(id, w); err != nil {
			return err
		}
	}
	for i := range w.Moves {
		if err := VMsOf(s).move(v, &w.Moves[i]); err != nil {
			return err
		}
	}
	if v.Status == store.Unresolved {
		v.Status = store.Resolved
		LeasesOf(s).DeployedChanged(v)
	}
	if w.PowerOn {
		LeasesOf(s).DeployedChanged(v)
	}
	return nil
}

func (va VApps) setNetworks(v *store.VApp, w store.Work) {
	switch {
	case w.Replace:
		v.Networks = w.Networks
		for _, vm := range va.cloud.Store.VMsOf(v.ID) {
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

// UndoCompose removes the vApp that an unsuccessful compose created.
func UndoCompose(s *cloud.Cloud, t *store.Task) {
	if v := s.Store.VApps[t.Work.VApp]; v != nil && v.Status == store.Unresolved {
		VAppsOf(s).Remove(v)
	}
}

func undoRecompose(s *cloud.Cloud, t *store.Task) {
	for _, id := range t.Work.VMs {
		if vm := s.Store.VMs[id]; vm != nil && vm.Status == store.Unresolved {
			VMsOf(s).Remove(vm)
		}
	}
}

func commitLease(s *cloud.Cloud, t *store.Task) error {
	v := s.Store.VApps[t.Work.VApp]
	if v == nil {
		return cloud.Gone("vApp", t.Work.VApp)
	}
	now := s.Clock.Now()
	v.Lease.Runtime = t.Work.Lease.Runtime
	v.Lease.Storage = t.Work.Lease.Storage
	// Setting a lease restarts it.
	if !v.Lease.Deployed.IsZero() {
		v.Lease.Deployed = now
	}
	if !v.Lease.Stopped.IsZero() {
		v.Lease.Stopped = now
	}
	LeasesOf(s).setAlarm(v)
	return nil
}

func commitDeleteVApp(s *cloud.Cloud, t *store.Task) error {
	v := s.Store.VApps[t.Work.VApp]
	if v == nil {
		return cloud.Gone("vApp", t.Work.VApp)
	}
	VAppsOf(s).Remove(v)
	return nil
}

// removeVMs removes VMs of a vApp. It reports whether this removed the vApp too.
func (va VApps) removeVMs(v *store.VApp, ids []string) (vappRemoved bool) {
	for _, id := range ids {
		if vm := va.cloud.Store.VMs[id]; vm != nil {
			VMsOf(va.cloud).Remove(vm)
		}
	}
	return len(ids) > 0 && va.removeIfEmpty(v)
}

// removeIfEmpty removes the vApp of a standalone VM that no longer exists. It reports whether it did so.
func (va VApps) removeIfEmpty(v *store.VApp) bool {
	if v == nil || !v.AutoNature || len(va.cloud.Store.VMsOf(v.ID)) > 0 {
		return false
	}
	va.Remove(v)
	return true
}

// Remove removes a vApp and its VMs.
func (va VApps) Remove(v *store.VApp) {
	for _, vm := range slices.Clone(va.cloud.Store.VMsOf(v.ID)) {
		VMsOf(va.cloud).Remove(vm)
	}
	delete(va.cloud.Store.VApps, v.ID)
	delete(va.cloud.Store.Children, v.ID)
	va.cloud.Store.Forget(v.ID)
}

// Locks returns the IDs of the entities that a write to a whole vApp locks.
func (va VApps) Locks(v *store.VApp) []string {
	return append([]string{v.ID}, va.VMIDs(v)...)
}

// VMIDs returns the IDs of a vApp's VMs.
func (va VApps) VMIDs(v *store.VApp) []string {
	var out []string
	for _, vm := range va.cloud.Store.VMsOf(v.ID) {
		out = append(out, vm.ID)
	}
	return out
}

// CheckIdle returns an error if a task uses the vApp or, if the simulator assumes so, one of its VMs.
func (va VApps) CheckIdle(v *store.VApp) error {
	if va.cloud.Assume.VAppWaitsForVM {
		return va.cloud.Tasks.CheckIdle(va.Locks(v)...)
	}
	return va.cloud.Tasks.CheckIdle(v.ID)
}

func commitProducts(s *cloud.Cloud, t *store.Task) error {
	v := s.Store.VApps[t.Work.VApp]
	if v == nil {
		return cloud.Gone("vApp", t.Work.VApp)
	}
	v.Properties = t.Work.Properties
	return nil
}

// CountIn counts the vApps of an organization.
func (va VApps) CountIn(orgID string) int {
	n := 0
	for _, v := range va.cloud.Store.VApps {
		if v.OrgID == orgID {
			n++
		}
	}
	return n
}
