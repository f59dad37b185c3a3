// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func diskRoutes(add addRoute) {
	add("POST", "/api/vdc/{id}/disk", with2(ownVDC, createDisk), latencyWrite)
	add("GET", "/api/disk/{disk}", getDisk, latencyLegacy)
	add("PUT", "/api/disk/{disk}", putDisk, latencyWrite)
	add("DELETE", "/api/disk/{disk}", deleteDisk, latencyWrite)
	add("GET", "/api/disk/{disk}/attachedVms", attachedVMs, latencyLegacy)
}

func diskByID(r *request, id string) (*store.Disk, error) {
	d := r.cloud.store.Disks[store.Bare(id)]
	if d == nil || !viewerOf(r).seesDisk(d) {
		// Clients recognise a deleted disk by these words.
		return nil, store.Refuse(http.StatusForbidden, store.CodeForbidden,
			"The VCD entity com.vmware.vcloud.entity.disk:%s does not exist.", store.Bare(id))
	}
	return d, nil
}

func idleDisk(r *request, id string) (*store.Disk, error) {
	d, err := diskByID(r, id)
	if err != nil {
		return nil, err
	}
	if !viewerOf(r).hasDisk(d) {
		return nil, store.Forbidden(r.op, d.ID)
	}
	return d, r.cloud.tasks.checkIdle(d.ID)
}

func diskNode(r *request, d *store.Disk) *xmltree.Node {
	A := xmltree.A
	path := "/api/disk/" + d.ID
	n := r.site.Entity("Disk", "disk", d.ID, d.Name, A("status", int(d.Status)), A("sizeMb", d.SizeMiB),
		A("busType", d.BusType),
		A("busSubType", d.BusSubType), A("encrypted", false), A("shareable", sharedDisk(d)),
		xmltree.Opt("sharingType", d.SharingType), A("uuid", d.UUID))
	n.Add(r.site.Link("up", "/api/vdc/"+d.VDCID, wire.Mime("vdc")))
	n.Add(r.site.Link("edit", path, wire.Mime("disk")))
	if len(d.AttachedTo) == 0 {
		n.Add(r.site.Link("remove", path, ""))
	}
	n.Add([]*xmltree.Node{
		r.site.Link("down", path+"/attachedVms", wire.Mime("vms")),
		r.site.Link("down", path+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", d.Description),
		tasksNode(r, d.ID),
		profileRef(r.site, r.cloud.store, "StorageProfile", d.StorageProfileID),
		ownerNode(r.site, d.OwnerID, r.cloud.store.User(d.OrgID, d.OwnerID)),
	})
	return n
}

// readDisk reads the Disk element of a request into d. The size comes in MB, or in bytes from older clients.
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
	if ref := n.At("StorageProfile"); ref != nil && ref.Attr("href") != "" {
		if d.StorageProfileID, err = readProfile(st, vdc, ref); err != nil {
			return err
		}
	}
	return nil
}

// Independent disks are SCSI disks on a paravirtual controller unless the request says otherwise.
const (
	busSCSI     = "6"
	busSubtype  = "VirtualSCSI"
	sharingNone = "None"
	sharingDisk = "DiskSharing"
)

// busNames are the display names of bus types.
var busNames = map[string]string{"5": "IDE", busSCSI: "SCSI", "20": "SATA"}

// sharedDisk reports whether several VMs may have the disk at a time.
func sharedDisk(d *store.Disk) bool { return d.SharingType != sharingNone }

// readSharing is how a disk is shared; older clients only say that it is.
func readSharing(n *xmltree.Node) string {
	if n.Attr("sharingType") == "" && n.Attr("shareable") == "true" {
		return sharingDisk
	}
	return orElse(n.Attr("sharingType"), sharingNone)
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

func createDisk(r *request, org *store.Org, vdc *store.VDC) (*response, error) {
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	n := tree.At("Disk")
	d := &store.Disk{
		ID:               r.cloud.ids.Next("disk"),
		OrgID:            org.ID,
		VDCID:            vdc.ID,
		OwnerID:          r.session.UserID,
		StorageProfileID: vdc.DefaultProfile(),
		BusType:          orElse(n.Attr("busType"), busSCSI),
		BusSubType:       orElse(n.Attr("busSubType"), busSubtype),
		SharingType:      readSharing(n),
		Metadata:         map[string]store.Metadata{},
	}
	d.UUID = r.cloud.ids.Named("diskUUID", d.ID)
	if err := readDisk(r.cloud.store, vdc, n, d); err != nil {
		return nil, err
	}
	r.cloud.store.Disks[d.ID] = d
	r.startTask(store.Work{Op: opCreateDisk, Disk: d.ID}, d.Entity(), []string{d.ID})
	return xmlOK(diskNode(r, d)).createdAt(r.site.Href("disk", d.ID)), nil
}

func getDisk(r *request) (*response, error) {
	d, err := diskByID(r, r.vars["disk"])
	if err != nil {
		return nil, err
	}
	return xmlOK(diskNode(r, d)), nil
}

func putDisk(r *request) (*response, error) {
	d, err := idleDisk(r, r.vars["disk"])
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	if len(d.AttachedTo) > 0 {
		return nil, store.BadRequest("The disk %q is attached to a VM and cannot be changed.", d.Name)
	}
	vdc, err := vdcByID(r.cloud.store, d.VDCID)
	if err != nil {
		return nil, err
	}
	spec := *d
	if err := readDisk(r.cloud.store, vdc, tree, &spec); err != nil {
		return nil, err
	}
	return r.start(store.Work{Op: opUpdateDisk, Disk: d.ID, DiskSpec: &spec}, d.Entity(), []string{d.ID}), nil
}

func deleteDisk(r *request) (*response, error) {
	d, err := idleDisk(r, r.vars["disk"])
	if err != nil {
		return nil, err
	}
	if len(d.AttachedTo) > 0 {
		return nil, store.BadRequest("The disk %q cannot be deleted: it is attached to VM %q.", d.Name,
			vmsOf(r.cloud).name(d.AttachedTo[0]))
	}
	return r.start(store.Work{Op: opDeleteDisk, Disk: d.ID}, d.Entity(), []string{d.ID}), nil
}

func (m vms) name(id string) string {
	if vm := m.cloud.store.VMs[id]; vm != nil {
		return vm.Name
	}
	return id
}

func attachedVMs(r *request) (*response, error) {
	d, err := diskByID(r, r.vars["disk"])
	if err != nil {
		return nil, err
	}
	n := xmltree.New("Vms", wire.Namespaces(), xmltree.A("href", r.site.Href("disk", d.ID)+"/attachedVms"),
		xmltree.A("type", wire.Mime("vms")))
	for _, id := range d.AttachedTo {
		n.Add(xmltree.New("VmReference", xmltree.A("href", r.site.Href("vm", id)), xmltree.A("id", store.URN("vm", id)),
			xmltree.A("name", vmsOf(r.cloud).name(id)),
			xmltree.A("type", wire.Mime("vm"))))
	}
	return xmlOK(n), nil
}

// diskParam reads which disk an attach or detach is about.
func diskParam(r *request) (*store.VM, *store.Disk, error) {
	vm, tree, err := parsed(idleVM)(r)
	if err != nil {
		return nil, nil, err
	}
	d, err := idleDisk(r, store.Bare(tree.At("Disk").Attr("href")))
	return vm, d, err
}

func attachDisk(r *request, vm *store.VM, d *store.Disk) (*response, error) {
	if n := len(d.AttachedTo); n > 0 && (!sharedDisk(d) || slices.Contains(d.AttachedTo, vm.ID)) {
		return nil, store.BadRequest("The disk %q is already attached to VM %q.", d.Name, vmsOf(r.cloud).name(d.AttachedTo[n-1]))
	}
	if v := r.cloud.store.VApps[vm.VAppID]; v.VDCID != d.VDCID {
		return nil, store.BadRequest("The disk %q and the VM %q are not in the same VDC.", d.Name, vm.Name)
	}
	return moveDisk(r, opAttach, vm, d)
}

func detachDisk(r *request, vm *store.VM, d *store.Disk) (*response, error) {
	if !slices.Contains(d.AttachedTo, vm.ID) {
		return nil, store.BadRequest("The disk %q is not attached to VM %q.", d.Name, vm.Name)
	}
	return moveDisk(r, opDetach, vm, d)
}

func moveDisk(r *request, op string, vm *store.VM, d *store.Disk) (*response, error) {
	w := store.Work{Op: op, VM: vm.ID, VApp: vm.VAppID, Disk: d.ID}
	return r.start(w, vm.Entity(), append(vmsOf(r.cloud).locks(vm), d.ID)), nil
}

func commitAttach(s *cloud, t *store.Task) error {
	vm := s.store.VMs[t.Work.VM]
	d := s.store.Disks[t.Work.Disk]
	if vm == nil || d == nil {
		return gone("disk", t.Work.Disk)
	}
	unit := nextUnit(vm.Disks, 0)
	d.AttachedTo = append(d.AttachedTo, vm.ID)
	vm.Disks = append(vm.Disks,
		store.VMDisk{ID: diskID(unit), SizeMiB: d.SizeMiB, Unit: unit, StorageProfileID: d.StorageProfileID, DiskID: d.ID})
	return nil
}

func commitDetach(s *cloud, t *store.Task) error {
	vm := s.store.VMs[t.Work.VM]
	d := s.store.Disks[t.Work.Disk]
	if vm == nil || d == nil {
		return gone("disk", t.Work.Disk)
	}
	d.Release(vm.ID)
	vm.Disks = slices.DeleteFunc(slices.Clone(vm.Disks), func(x store.VMDisk) bool { return x.DiskID == d.ID })
	return nil
}

// commitDisk ends the creation or change of a disk.
func commitDisk(s *cloud, t *store.Task) error {
	d := s.store.Disks[t.Work.Disk]
	if d == nil {
		return gone("disk", t.Work.Disk)
	}
	if spec := t.Work.DiskSpec; spec != nil {
		d.Name = spec.Name
		d.Description = spec.Description
		d.SizeMiB = spec.SizeMiB
		d.StorageProfileID = spec.StorageProfileID
	}
	d.Status = store.Resolved
	return nil
}

func commitDeleteDisk(s *cloud, t *store.Task) error {
	delete(s.store.Disks, t.Work.Disk)
	return nil
}
