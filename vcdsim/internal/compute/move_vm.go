// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// movesSource reports whether an item moves its source instead of copying it.
func movesSource(item *xmltree.Node) bool {
	return strings.EqualFold(item.Attr("sourceDelete"), "true")
}

// takeMoves removes the items from a request that move VMs, and returns them. Items with VMs of templates stay, because
// they cannot move.
func takeMoves(st *store.Store, tree *xmltree.Node) []*xmltree.Node {
	var out []*xmltree.Node
	moves := func(n *xmltree.Node) bool {
		return n.Name == "SourcedItem" && movesSource(n) && st.VMs[fiql.ID(n.At("Source").Attr("href"))] != nil
	}
	for _, n := range tree.Children {
		if moves(n) {
			out = append(out, n)
		}
	}
	tree.Children = slices.DeleteFunc(slices.Clone(tree.Children), moves)
	return out
}

// readMoves reads the items that move VMs to a vApp. added are the other new VMs of the vApp.
func readMoves(r *api.Request, vdc *store.VDC, v *store.VApp, items []*xmltree.Node, added []*store.VM) ([]store.VMChange, error) {
	var out []store.VMChange
	all := slices.Clone(added)
	foreign := 0 // from other VDCs
	for _, item := range items {
		source, err := movableVM(r, v, fiql.ID(item.At("Source").Attr("href")))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(c store.VMChange) bool { return c.VM.ID == source.ID }) {
			return nil, store.BadRequest("The VM %q cannot be moved twice.", source.Name)
		}
		c, err := readMove(r, vdc, v, source, item)
		if err != nil {
			return nil, err
		}
		if r.Cloud.Store.VApps[source.VAppID].VDCID != vdc.ID {
			foreign++
		}
		out = append(out, *c)
		all = append(all, &c.VM)
	}
	if err := checkNewNames(r.Cloud.Store, v, all); err != nil {
		return nil, err
	}
	if err := checkVAppSize(r.Cloud.Store, &r.Cloud.Assume, v, len(all)); err != nil {
		return nil, err
	}
	return out, CheckVMQuota(r.Cloud, vdc, foreign+len(added))
}

// movableVM returns a VM of another vApp. No task uses the VM or its vApp.
func movableVM(r *api.Request, to *store.VApp, id string) (*store.VM, error) {
	vm, err := vmByID(r, id)
	if err != nil {
		return nil, err
	}
	if vm.VAppID == to.ID {
		return nil, store.BadRequest("The VM %q is already in vApp %q.", vm.Name, to.Name)
	}
	if err := r.Cloud.Tasks.CheckIdle(vm.ID, vm.VAppID); err != nil {
		return nil, err
	}
	if vm.Status == store.Unresolved || vm.Status == store.FailedCreation {
		return nil, store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	}
	return vm, nil
}

// readMove returns the change of a VM that an item moves to a vApp.
func readMove(r *api.Request, vdc *store.VDC, v *store.VApp, source *store.VM, item *xmltree.Node) (*store.VMChange, error) {
	c := &store.VMChange{
		VM:      source.Clone(),
		Name:    true,
		Compute: true,
		NICs:    true,
		Disks:   true,
		Custom:  true,
	}
	vm := &c.VM
	if r.Cloud.Store.VApps[source.VAppID].VDCID != vdc.ID {
		if slices.ContainsFunc(vm.Disks, func(d store.VMDisk) bool { return d.DiskID != "" }) {
			return nil, store.BadRequest("The VM %q cannot be moved to another VDC, because it has independent disks.", vm.Name)
		}
		moveDisks(r.Cloud.Store, vm, vdc.DefaultProfile(), c)
		vm.StorageProfileID = vdc.DefaultProfile()
	}
	if err := readSourcedItem(r, vdc, vm, item); err != nil {
		return nil, err
	}
	params := item.At("InstantiationParams")
	if err := moveNICs(r, v, source, vm, params.At("NetworkConnectionSection")); err != nil {
		return nil, err
	}
	if err := readSourceHardware(r, vm, params.At("VirtualHardwareSection"), c); err != nil {
		return nil, err
	}
	return c, checkRunningHardware(&r.Cloud.Assume, c, source)
}

// moveNICs connects the NICs of a moved VM to the networks of its new vApp: to those in the section, or without a section to
// those with the same names. Addresses stay only in the same subnet.
func moveNICs(r *api.Request, v *store.VApp, source, vm *store.VM, section *xmltree.Node) error {
	if section != nil {
		if err := readNICsFor(r, v, source, vm, section); err != nil {
			return err
		}
	}
	vm.Disconnect(v)
	for i := range vm.NICs {
		nic := &vm.NICs[i]
		if segmentOf(r.Cloud.Store.VApps[source.VAppID], nicByMAC(source, nic.MAC)) != segmentOf(v, nic) {
			nic.Lease = ""
			nic.Secondary = ""
			if nic.Mode != store.ModeManual {
				nic.Address = ""
			}
		}
		if err := machines.IPAMOf(r.Cloud).CheckNIC(v, source, *nic); err != nil {
			return err
		}
	}
	return nil
}

// nicByMAC returns the NIC of a VM with a MAC address, or nil.
func nicByMAC(vm *store.VM, mac string) *store.NIC {
	i := slices.IndexFunc(vm.NICs, func(n store.NIC) bool { return n.MAC == mac })
	if i < 0 {
		return nil
	}
	return &vm.NICs[i]
}

// segmentOf returns the ID of the network whose addresses a NIC uses, or "" for a NIC without a network.
func segmentOf(v *store.VApp, nic *store.NIC) string {
	if nic == nil {
		return ""
	}
	if n := v.Network(nic.Network); n != nil {
		return n.Segment()
	}
	return ""
}
