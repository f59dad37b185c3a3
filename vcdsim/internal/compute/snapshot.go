// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
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
	add("GET", "/api/vApp/vm-{vm}/snapshotSection", api.WithSite(OwnVM, getSnapshot), cloud.LatencyLegacy)
}

func getSnapshot(site wire.Site, vm *store.VM) (*api.Response, error) {
	return api.XML(ovf.SnapshotSection(site, vm, true)), nil
}

// snapshotWork returns the work of a snapshot operation on VMs, and an error if the operation is invalid for one of
// them. PowerOn means that the snapshot includes memory.
func snapshotWork(r *api.Request, op string, vms []*store.VM) (store.Work, error) {
	w := store.Work{Op: op}
	for _, vm := range vms {
		if err := machines.ChangeSnapshot(vm, op); err != nil {
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
	return r.Start(w, v.Entity(), machines.VAppsOf(r.Cloud).Locks(v)), nil
}
