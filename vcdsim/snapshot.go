// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func snapshotRoutes(add addRoute) {
	for action, op := range map[string]string{
		"createSnapshot":          opCreateSnapshot,
		"revertToCurrentSnapshot": opRevertSnapshot,
		"removeAllSnapshots":      opRemoveSnapshot,
	} {
		add("POST", "/api/vApp/vm-{vm}/action/"+action,
			func(r *request) (*response, error) { return snapshotVM(r, op) }, latencyWrite)
		add("POST", "/api/vApp/vapp-{vapp}/action/"+action,
			func(r *request) (*response, error) { return snapshotVApp(r, op) }, latencyWrite)
	}
	add("GET", "/api/vApp/vm-{vm}/snapshotSection", with(ownVM, getSnapshot), latencyLegacy)
}

func snapshotSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	n := wire.Element("SnapshotSection", root)
	n.Add(section(site.Href("vm", vm.ID)+"/snapshotSection", "snapshotSection"))
	n.Add(xmltree.T("ovf:Info", "Snapshot information section"))
	if s := vm.Snapshot; s != nil {
		n.Add(xmltree.New("Snapshot", xmltree.A("created", s.Created), xmltree.A("poweredOn", s.PoweredOn),
			xmltree.A("size", s.SizeMiB<<20)))
	}
	return n
}

func getSnapshot(r *request, vm *store.VM) (*response, error) {
	return xmlOK(snapshotSection(r.site, vm, true)), nil
}

// snapshotWork refuses what cannot be done and reads whether memory is asked for.
func snapshotWork(r *request, op string, vms []*store.VM) (store.Work, error) {
	w := store.Work{Op: op}
	for _, vm := range vms {
		if err := changeSnapshot(vm, op); err != nil {
			return store.Work{}, err
		}
		w.VMs = append(w.VMs, vm.ID)
	}
	if op == opCreateSnapshot && len(r.body) > 0 {
		tree, err := r.tree()
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
	case op == opRevertSnapshot && vm.Snapshot == nil:
		return store.BadRequest("The VM %q has no snapshot.", vm.Name)
	case op == opCreateSnapshot && slices.ContainsFunc(vm.Disks, func(d store.VMDisk) bool { return d.DiskID != "" }):
		return store.BadRequest("A snapshot of VM %q cannot be made: an independent disk is attached to it.", vm.Name)
	}
	return nil
}

func snapshotVM(r *request, op string) (*response, error) {
	vm, err := idleVM(r)
	if err != nil {
		return nil, err
	}
	w, err := snapshotWork(r, op, []*store.VM{vm})
	if err != nil {
		return nil, err
	}
	return startVM(r, vm, w)
}

func snapshotVApp(r *request, op string) (*response, error) {
	v, err := idleVApp(r)
	if err != nil {
		return nil, err
	}
	w, err := snapshotWork(r, op, r.cloud.store.VMsOf(v.ID))
	if err != nil {
		return nil, err
	}
	w.VApp = v.ID
	return r.start(w, v.Entity(), vappsOf(r.cloud).locks(v)), nil
}

func commitSnapshot(s *cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		vm := s.store.VMs[id]
		if vm == nil {
			return gone("vm", id)
		}
		switch t.Work.Op {
		case opCreateSnapshot:
			vm.Snapshot = vm.TakeSnapshot(s.clock.Now(), t.Work.PowerOn)
		case opRevertSnapshot:
			vmsOf(s).revert(vm)
		default:
			vm.Snapshot = nil
		}
	}
	leasesOf(s).deployedChanged(s.store.VApps[t.Work.VApp])
	return nil
}

// revert brings a VM back to its snapshot; without memory in it the VM is off then.
func (m vms) revert(vm *store.VM) {
	x := vm.Snapshot.Clone()
	if x == nil {
		return
	}
	m.setPower(vm, store.PoweredOff, false)
	vm.CPUs = x.CPUs
	vm.CoresPerSocket = x.CoresPerSocket
	vm.MemoryMiB = x.MemoryMiB
	vm.ExtraConfig = x.ExtraConfig
	if x.PoweredOn {
		m.setPower(vm, store.PoweredOn, false)
	}
}
