// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func diskRoutes(add api.AddRoute) {
	add("POST", "/api/vdc/{id}/disk", api.With2(vdcs.OwnVDC, createDisk), cloud.LatencyWrite)
	add("GET", "/api/disk/{disk}", getDisk, cloud.LatencyLegacy)
	add("PUT", "/api/disk/{disk}", putDisk, cloud.LatencyWrite)
	add("DELETE", "/api/disk/{disk}", deleteDisk, cloud.LatencyWrite)
	add("GET", "/api/disk/{disk}/attachedVms", attachedVMs, cloud.LatencyLegacy)
}

func diskNode(r *api.Request, d *store.Disk) *xmltree.Node {
	A := xmltree.A
	path := "/api/disk/" + d.ID
	n := r.Site.Entity("Disk", "disk", d.ID, d.Name, A("status", int(d.Status)), A("sizeMb", d.SizeMiB),
		A("busType", d.BusType),
		A("busSubType", d.BusSubType), A("encrypted", false), A("shareable", machines.SharedDisk(d)),
		A("iops", d.IOPS),
		xmltree.Opt("sharingType", d.SharingType), A("uuid", d.UUID))
	n.Add(r.Site.Link("up", "/api/vdc/"+d.VDCID, wire.Mime("vdc")))
	n.Add(r.Site.Link("edit", path, wire.Mime("disk")))
	if len(d.AttachedTo) == 0 {
		n.Add(r.Site.Link("remove", path, ""))
	}
	n.Add([]*xmltree.Node{
		r.Site.Link("down", path+"/attachedVms", wire.Mime("vms")),
		r.Site.Link("down", path+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", d.Description),
		api.TasksNode(r, d.ID),
		ovf.ProfileRef(r.Site, r.Cloud.Store, "StorageProfile", d.StorageProfileID),
		api.OwnerNode(r.Site, d.OwnerID, r.Cloud.Store.User(d.OrgID, d.OwnerID)),
	})
	return n
}

// readDisk reads the Disk element of a request into d. The size is in MB, or in bytes from older clients.
func readDisk(st *store.Store, vdc *store.VDC, n *xmltree.Node, d *store.Disk) error {
	if n == nil || n.Attr("name") == "" {
		return store.BadRequest("Bad request - the disk has no name.")
	}
	d.Name = n.Attr("name")
	d.Description = n.Str("Description")
	size, err := strconv.ParseInt(n.Attr("sizeMb"), 10, 64)
	if err != nil {
		bytes, err := strconv.ParseInt(n.Attr("size"), 10, 64)
		if err != nil {
			return store.BadRequest("Bad request - the disk has no size.")
		}
		size = bytes >> 20
	}
	if size <= 0 || size < d.SizeMiB {
		return store.BadRequest("The size %d MB of disk %q is invalid.", size, d.Name)
	}
	d.SizeMiB = size
	if iops := n.Attr("iops"); iops != "" {
		if d.IOPS, err = strconv.ParseInt(iops, 10, 64); err != nil {
			return store.BadRequest("The number %q of operations per second of disk %q is invalid.", iops, d.Name)
		}
	}
	if ref := n.At("StorageProfile"); ref != nil && ref.Attr("href") != "" {
		if d.StorageProfileID, err = readProfile(st, vdc, ref); err != nil {
			return err
		}
	}
	return nil
}

// readSharing returns the sharing type of a disk. Older clients send only the attribute shareable.
func readSharing(n *xmltree.Node) string {
	if n.Attr("sharingType") == "" && n.Attr("shareable") == "true" {
		return machines.SharingDisk
	}
	return api.OrElse(n.Attr("sharingType"), machines.SharingNone)
}

func createDisk(r *api.Request, org *store.Org, vdc *store.VDC) (*api.Response, error) {
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	n := tree.At("Disk")
	d := &store.Disk{
		ID:               r.Cloud.IDs.Next("disk"),
		OrgID:            org.ID,
		VDCID:            vdc.ID,
		OwnerID:          r.Session.UserID,
		StorageProfileID: vdc.DefaultProfile(),
		BusType:          api.OrElse(n.Attr("busType"), machines.BusSCSI),
		BusSubType:       api.OrElse(n.Attr("busSubType"), machines.BusSubtype),
		SharingType:      readSharing(n),
		Metadata:         map[string]store.Metadata{},
	}
	d.UUID = r.Cloud.IDs.Named("diskUUID", d.ID)
	if err := readDisk(r.Cloud.Store, vdc, n, d); err != nil {
		return nil, err
	}
	r.Cloud.Store.Disks[d.ID] = d
	r.StartTask(store.Work{Op: cloud.OpCreateDisk, Disk: d.ID}, d.Entity(), []string{d.ID})
	return api.XML(diskNode(r, d)).CreatedAt(r.Site.Href("disk", d.ID)), nil
}

func getDisk(r *api.Request) (*api.Response, error) {
	d, err := diskByID(r, r.Vars["disk"])
	if err != nil {
		return nil, err
	}
	return api.XML(diskNode(r, d)), nil
}

func putDisk(r *api.Request) (*api.Response, error) {
	d, err := idleDisk(r, r.Vars["disk"])
	if err != nil {
		return nil, err
	}
	tree, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if len(d.AttachedTo) > 0 {
		return nil, store.BadRequest("The disk %q is attached to a VM and cannot be changed.", d.Name)
	}
	vdc, err := vdcs.VDCByID(r.Cloud.Store, d.VDCID)
	if err != nil {
		return nil, err
	}
	spec := *d
	if err := readDisk(r.Cloud.Store, vdc, tree, &spec); err != nil {
		return nil, err
	}
	return r.Start(store.Work{Op: cloud.OpUpdateDisk, Disk: d.ID, DiskSpec: &spec}, d.Entity(), []string{d.ID}), nil
}

func deleteDisk(r *api.Request) (*api.Response, error) {
	d, err := idleDisk(r, r.Vars["disk"])
	if err != nil {
		return nil, err
	}
	if len(d.AttachedTo) > 0 {
		return nil, store.BadRequest("The disk %q cannot be deleted: it is attached to VM %q.", d.Name,
			machines.VMsOf(r.Cloud).Name(d.AttachedTo[0]))
	}
	return r.Start(store.Work{Op: cloud.OpDeleteDisk, Disk: d.ID}, d.Entity(), []string{d.ID}), nil
}

func attachedVMs(r *api.Request) (*api.Response, error) {
	d, err := diskByID(r, r.Vars["disk"])
	if err != nil {
		return nil, err
	}
	n := xmltree.New("Vms", wire.Namespaces(), xmltree.A("href", r.Site.Href("disk", d.ID)+"/attachedVms"),
		xmltree.A("type", wire.Mime("vms")))
	for _, id := range d.AttachedTo {
		n.Add(xmltree.New("VmReference", xmltree.A("href", r.Site.Href("vm", id)), xmltree.A("id", store.URN("vm", id)),
			xmltree.A("name", machines.VMsOf(r.Cloud).Name(id)),
			xmltree.A("type", wire.Mime("vm"))))
	}
	return api.XML(n), nil
}

// diskParam returns the VM in the path and the disk that the request attaches or detaches.
func diskParam(r *api.Request) (*store.VM, *store.Disk, error) {
	vm, tree, err := api.Parsed(IdleVM)(r)
	if err != nil {
		return nil, nil, err
	}
	d, err := idleDisk(r, store.Bare(tree.At("Disk").Attr("href")))
	return vm, d, err
}

func attachDisk(r *api.Request, vm *store.VM, d *store.Disk) (*api.Response, error) {
	if n := len(d.AttachedTo); n > 0 && (!machines.SharedDisk(d) || slices.Contains(d.AttachedTo, vm.ID)) {
		return nil, store.BadRequest("The disk %q is already attached to VM %q.", d.Name, machines.VMsOf(r.Cloud).Name(d.AttachedTo[n-1]))
	}
	if v := r.Cloud.Store.VApps[vm.VAppID]; v.VDCID != d.VDCID {
		return nil, store.BadRequest("The disk %q and the VM %q are not in the same VDC.", d.Name, vm.Name)
	}
	slot, err := diskSlot(r, vm)
	if err != nil {
		return nil, err
	}
	return moveDisk(r, store.Work{Op: cloud.OpAttach, Slot: slot}, vm, d)
}

// diskSlot returns the bus and unit at which a disk is attached. The defaults are the first bus, and the first unit
// after its other disks.
func diskSlot(r *api.Request, vm *store.VM) (store.DiskSlot, error) {
	tree, err := r.Tree()
	if err != nil {
		return store.DiskSlot{}, err
	}
	bus, _ := tree.Int("BusNumber")
	unit, given := tree.Int("UnitNumber")
	slot := store.DiskSlot{Bus: int(bus), Unit: int(unit)}
	if !given {
		slot.Unit = machines.NextUnit(vm.Disks, slot.Bus)
	}
	if slot.Bus < 0 || slot.Bus > machines.MaxBus || slot.Unit < 0 || slot.Unit >= machines.UnitsOfBus {
		return slot, store.BadRequest("A VM has no unit %d on a bus %d.", slot.Unit, slot.Bus)
	}
	for _, other := range vm.Disks {
		if other.Bus == slot.Bus && other.Unit == slot.Unit {
			return slot, store.BadRequest("The unit %d on bus %d of the VM %q is in use.", slot.Unit, slot.Bus, vm.Name)
		}
	}
	return slot, nil
}

func detachDisk(r *api.Request, vm *store.VM, d *store.Disk) (*api.Response, error) {
	if !slices.Contains(d.AttachedTo, vm.ID) {
		return nil, store.BadRequest("The disk %q is not attached to VM %q.", d.Name, vm.Name)
	}
	return moveDisk(r, store.Work{Op: cloud.OpDetach}, vm, d)
}

func moveDisk(r *api.Request, w store.Work, vm *store.VM, d *store.Disk) (*api.Response, error) {
	w.VM = vm.ID
	w.VApp = vm.VAppID
	w.Disk = d.ID
	return r.Start(w, vm.Entity(), append(machines.VMsOf(r.Cloud).Locks(vm), d.ID)), nil
}
