// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func snapshotRoutes(add api.AddRoute) {
	for action, op := range map[string]string{
		"createSnapshot":          cloud.OpCreateSnapshot,
		"revertToCurrentSnapshot": cloud.OpRevertSnapshot,
		"removeAllSnapshots":      cloud.OpRemoveSnapshot,
	} {
		add("POST", "/api/vApp/vm-{vm}/action/"+action,
			func(r *api.Request) (*api.Response, error) { return snapshotVM(r, op) }, cloud.LatencyWrite)
		add("POST", "/api/vApp/vapp-{vapp}/action/"+action,
			func(r *api.Request) (*api.Response, error) { return snapshotVApp(r, op) }, cloud.LatencyWrite)
	}
	add("GET", "/api/vApp/vm-{vm}/snapshotSection", api.With(OwnVM, getSnapshot), cloud.LatencyLegacy)
}

func snapshotSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	n := wire.Element("SnapshotSection", root)
	n.Add(api.Section(site.Href("vm", vm.ID)+"/snapshotSection", "snapshotSection"))
	n.Add(xmltree.T("ovf:Info", "Snapshot information section"))
	if s := vm.Snapshot; s != nil {
		n.Add(xmltree.New("Snapshot", xmltree.A("created", s.Created), xmltree.A("poweredOn", s.PoweredOn),
			xmltree.A("size", s.SizeMiB<<20)))
	}
	return n
}

func getSnapshot(r *api.Request, vm *store.VM) (*api.Response, error) {
	return api.XML(snapshotSection(r.Site, vm, true)), nil
}

// snapshotWork refuses what cannot be done and reads whether memory is asked for.
func snapshotWork(r *api.Request, op string, vms []*store.VM) (store.Work, error) {
	w := store.Work{Op: op}
	for _, vm := range vms {
		if err := changeSnapshot(vm, op); err != nil {
			return store.Work{}, err
		}
		w.VMs = append(w.VMs, vm.ID)
	}
	if op == cloud.OpCreateSnapshot && len(r.Content) > 0 {
		tree, err := r.Tree()
		if err != nil {
			return store.Work{}, err
		}
		w.PowerOn = tree.Attr("memory") == "true"
	}
	return w, nil
}

// changeSnapshot refuses an operation on snapshots that the VM's state rules out.
func changeSnapshot(vm *store.VM, op string) error {
	switch {
	case vm.Status == store.Unresolved || vm.Status == store.FailedCreation:
		return store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	case op == cloud.OpRevertSnapshot && vm.Snapshot == nil:
		return store.BadRequest("The VM %q has no snapshot.", vm.Name)
	case op == cloud.OpCreateSnapshot && slices.ContainsFunc(vm.Disks, func(d store.VMDisk) bool { return d.DiskID != "" }):
		return store.BadRequest("A snapshot of VM %q cannot be made: an independent disk is attached to it.", vm.Name)
	}
	return nil
}

func snapshotVM(r *api.Request, op string) (*api.Response, error) {
	vm, err := IdleVM(r)
	if err != nil {
		return nil, err
	}
	w, err := snapshotWork(r, op, []*store.VM{vm})
	if err != nil {
		return nil, err
	}
	return StartVM(r, vm, w)
}

func snapshotVApp(r *api.Request, op string) (*api.Response, error) {
	v, err := idleVApp(r)
	if err != nil {
		return nil, err
	}
	w, err := snapshotWork(r, op, r.Cloud.Store.VMsOf(v.ID))
	if err != nil {
		return nil, err
	}
	w.VApp = v.ID
	return r.Start(w, v.Entity(), VAppsOf(r.Cloud).Locks(v)), nil
}

func commitSnapshot(s *cloud.Cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		vm := s.Store.VMs[id]
		if vm == nil {
			return cloud.Gone("vm", id)
		}
		switch t.Work.Op {
		case cloud.OpCreateSnapshot:
			vm.Snapshot = vm.TakeSnapshot(s.Clock.Now(), t.Work.PowerOn)
		case cloud.OpRevertSnapshot:
			VMsOf(s).revert(vm)
		default:
			vm.Snapshot = nil
		}
	}
	LeasesOf(s).DeployedChanged(s.Store.VApps[t.Work.VApp])
	return nil
}

// revert brings a VM back to its snapshot; without memory in it the VM is off then.
func (m vms) revert(vm *store.VM) {
	x := vm.Snapshot.Clone()
	if x == nil {
		return
	}
	m.SetPower(vm, store.PoweredOff, false)
	vm.CPUs = x.CPUs
	vm.CoresPerSocket = x.CoresPerSocket
	vm.MemoryMiB = x.MemoryMiB
	vm.ExtraConfig = x.ExtraConfig
	if x.PoweredOn {
		m.SetPower(vm, store.PoweredOn, false)
	}
}
