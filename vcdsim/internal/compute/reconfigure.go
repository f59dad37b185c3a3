// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A changeReader applies a request body to a copy of the VM and marks the changed parts in c.
type changeReader func(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error

// changeVM starts a reconfiguration that edits a copy of the VM.
func changeVM(r *api.Request, edit changeReader) (*api.Response, error) {
	vm, tree, err := api.Parsed(IdleVM)(r)
	if err != nil {
		return nil, err
	}
	c := &store.VMChange{VM: vm.Clone()}
	if err := edit(r, &c.VM, tree, c); err != nil {
		return nil, err
	}
	if err := permitChange(c, r, vm); err != nil {
		return nil, err
	}
	if err := checkRunningHardware(&r.Cloud.Assume, c, vm); err != nil {
		return nil, err
	}
	return StartVM(r, vm, store.Work{Op: cloud.OpUpdateVM, Change: c})
}

// permitChange refuses changes of parts that require an additional right, beyond the right to edit VMs.
func permitChange(c *store.VMChange, r *api.Request, before *store.VM) error {
	if r.Session.Provider() {
		return nil
	}
	for _, part := range partsOfChange(c, before) {
		if !part.changed {
			continue
		}
		if err := access.PermittedBy(r, &access.Need{Rights: []string{part.right}, Operation: "VAPP_UPDATE_VM"}); err != nil {
			return err
		}
	}
	return nil
}

// A changedPart is a part of a VM and the additional right that changing it requires.
type changedPart struct {
	changed bool
	right   string
}

func partsOfChange(c *store.VMChange, before *store.VM) []changedPart {
	return []changedPart{
		{c.Compute && c.VM.CPUs != before.CPUs, "vApp: Edit VM CPU"},
		{c.Compute && c.VM.MemoryMiB != before.MemoryMiB, "vApp: Edit VM Memory"},
		{
			c.Compute && (c.VM.SizingPolicyID != before.SizingPolicyID ||
				c.VM.PlacementPolicyID != before.PlacementPolicyID),
			"vApp: Edit VM Compute Policy",
		},
		{c.NICs && !slices.Equal(c.VM.NICs, before.NICs), "vApp: Edit VM Network"},
		{c.Disks && !slices.Equal(c.VM.Disks, before.Disks), "vApp: Edit VM Hard Disk"},
	}
}

func reconfigureVM(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
		for _, read := range []changeReader{
			readVMName, readHardware, readSpec, readCompute, readBoot, readCapabilities,
		} {
			if err := read(r, vm, tree, c); err != nil {
				return err
			}
		}
		if section := tree.At("NetworkConnectionSection"); section != nil {
			if err := changeNICs(r, vm, section, c); err != nil {
				return err
			}
		}
		if section := tree.At("GuestCustomizationSection"); section != nil {
			c.Custom = true
			return readCustomization(section, &vm.Customization)
		}
		return nil
	})
}

func readVMName(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	c.Name = true
	if d := tree.At("Description"); d != nil {
		vm.Description = tree.Str("Description")
	}
	name := tree.Attr("name")
	if name == "" || name == vm.Name {
		return nil
	}
	for _, o := range r.Cloud.Store.VMsOf(vm.VAppID) {
		if o.Name == name {
			return store.DuplicateName(name)
		}
	}
	vm.Name = name
	return api.CheckName("VM", name)
}

// readHardware reads a VirtualHardwareSection: extra configuration, and CPU and memory items.
func readHardware(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	section := tree.At("VirtualHardwareSection")
	if section == nil {
		return nil
	}
	return readHardwareSection(r, vm, section, c)
}

func readHardwareSection(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange) error {
	if err := readExtraConfigOf(r, section, c); err != nil {
		return err
	}
	if len(section.All("Item")) == 0 && !r.Cloud.Assume.EmptyHardwareKeepsItems {
		c.Disks = true
		vm.Disks = slices.DeleteFunc(slices.Clone(vm.Disks), func(d store.VMDisk) bool { return d.DiskID == "" })
	}
	readSize(vm, section, c)
	return nil
}

// readSize reads the CPU and memory items of a VirtualHardwareSection.
func readSize(vm *store.VM, section *xmltree.Node, c *store.VMChange) {
	for _, i := range itemsOf(section, resourceCPU) {
		if n, ok := i.Int("VirtualQuantity"); ok {
			c.Compute = true
			vm.CPUs = n
			if cores, ok := i.Int("CoresPerSocket"); ok {
				vm.CoresPerSocket = cores
			}
		}
	}
	for _, i := range itemsOf(section, resourceMemory) {
		if n, ok := i.Int("VirtualQuantity"); ok {
			c.Compute = true
			vm.MemoryMiB = n
		}
	}
}

// readExtraConfigOf reads the extra configuration in a VirtualHardwareSection.
func readExtraConfigOf(r *api.Request, section *xmltree.Node, c *store.VMChange) error {
	extra := section.All("ExtraConfig")
	if len(extra) > 0 && !access.MayUseExtraConfig(r) {
		return access.PermittedBy(r, &access.Need{Rights: []string{access.RightExtraConfig}, Operation: "VAPP_UPDATE_VM"})
	}
	return readExtraConfig(c, extra)
}

func readExtraConfig(c *store.VMChange, elements []*xmltree.Node) error {
	for _, e := range elements {
		if c.ExtraConfig == nil {
			c.ExtraConfig = map[string]string{}
		}
		key := e.Attr("key")
		if key == "" {
			return store.BadRequest("Bad request - an ExtraConfig element has no key.")
		}
		c.ExtraConfig[key] = e.Attr("value")
	}
	return nil
}

func readSpec(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	spec := tree.At("VmSpecSection")
	if spec == nil || spec.Attr("Modified") == "false" {
		return nil
	}
	if n, ok := spec.Int("NumCpus"); ok {
		c.Compute = true
		vm.CPUs = n
	}
	if n, ok := spec.Int("NumCoresPerSocket"); ok {
		c.Compute = true
		vm.CoresPerSocket = n
	}
	if n, ok := spec.Int("MemoryResourceMb", "Configured"); ok {
		c.Compute = true
		vm.MemoryMiB = n
	}
	for name, share := range map[string]*store.Share{"CpuResourceMhz": &vm.CPUShare, "MemoryResourceMb": &vm.MemoryShare} {
		if n := spec.At(name); n != nil {
			c.Compute = true
			readShare(n, share)
		}
	}
	if err := readMachine(vm, spec, c); err != nil {
		return err
	}
	if section := spec.At("DiskSection"); section != nil {
		return readDisks(r, vm, section, c)
	}
	return nil
}

// readShare reads the allocation of a resource. Fields that the element omits keep their values.
func readShare(n *xmltree.Node, s *store.Share) {
	for name, into := range map[string]*int64{"Reservation": &s.Reservation, "Limit": &s.Limit, "Shares": &s.Shares} {
		if v, ok := n.Int(name); ok {
			*into = v
		}
	}
	s.Level = api.OrElse(n.Str("SharesLevel"), s.Level)
}

// readDisks reads a DiskSection, which lists all disks. A disk that it omits is removed; a disk without ID is new.
func readDisks(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange) error {
	var out []store.VMDisk
	taken := slices.Clone(vm.Disks)
	for _, s := range section.All("DiskSettings") {
		d, err := readDiskSettings(r.Cloud, vm, s, taken)
		if err != nil {
			return err
		}
		taken = append(taken, d)
		out = append(out, d)
	}
	for _, d := range vm.Disks {
		if d.DiskID != "" && !slices.ContainsFunc(out, func(o store.VMDisk) bool { return o.ID == d.ID }) {
			out = append(out, d) // only a detach removes an independent disk
		}
	}
	c.Disks = true
	vm.Disks = out
	return nil
}

// newDisk returns a new disk on the requested unit. If the unit is taken or not specified, the disk follows all others
// on its bus.
func newDisk(vm *store.VM, s *xmltree.Node, taken []store.VMDisk) store.VMDisk {
	bus, _ := s.Int("BusNumber")
	unit, placed := s.Int("UnitNumber")
	d := store.VMDisk{Bus: int(bus), Unit: int(unit), StorageProfileID: vm.StorageProfileID, Adapter: s.Str("AdapterType")}
	if !placed || slices.ContainsFunc(taken, func(o store.VMDisk) bool { return o.Bus == d.Bus && o.Unit == d.Unit }) {
		d.Unit = machines.NextUnit(taken, d.Bus)
	}
	d.ID = machines.DiskID(d.Bus*machines.UnitsOfBus + d.Unit)
	return d
}

// readDiskSettings reads a DiskSettings element.
func readDiskSettings(c *cloud.Cloud, vm *store.VM, s *xmltree.Node, taken []store.VMDisk) (store.VMDisk, error) {
	size, ok := s.Int("SizeMb")
	if !ok {
		return store.VMDisk{}, store.BadRequest("Bad request - a disk has no SizeMb.")
	}
	if bus, _ := s.Int("BusNumber"); bus < 0 || bus > 3 {
		return store.VMDisk{}, store.BadRequest("The bus number %d is invalid.", bus)
	}
	d := newDisk(vm, s, taken)
	if id := s.Str("DiskId"); id != "" {
		i := slices.IndexFunc(vm.Disks, func(h store.VMDisk) bool { return h.ID == id })
		if i < 0 {
			return store.VMDisk{}, store.BadRequest("The disk %q does not exist in VM %q.", id, vm.Name)
		}
		d = vm.Disks[i]
		if err := mayResizeDisk(vm, d, size, &c.Assume); err != nil {
			return store.VMDisk{}, err
		}
	}
	if size < d.SizeMiB {
		return store.VMDisk{}, store.BadRequest("The size of disk %q of VM %q cannot be reduced from %d MB to %d MB.", d.ID,
			vm.Name, d.SizeMiB, size)
	}
	d.SizeMiB = size
	before := d.StorageProfileID
	if err := readDiskProfile(&d, c.Store, vm, s.At("StorageProfile")); err != nil {
		return store.VMDisk{}, err
	}
	placed := s.Str("DiskId") == "" || before != d.StorageProfileID
	return d, readDiskIOPS(c, vm, &d, s, placed)
}

// readDiskProfile reads the storage profile of a disk if the request changes it.
func readDiskProfile(d *store.VMDisk, st *store.Store, vm *store.VM, ref *xmltree.Node) error {
	if ref == nil || ref.Attr("href") == "" || store.Bare(ref.Attr("href")) == d.StorageProfileID {
		return nil
	}
	_, vdc, _ := st.Profile(vm.StorageProfileID) // the vApp may not exist yet
	if vdc == nil {
		return store.Forbidden("VDC_STORAGE_PROFILE_VIEW", vm.StorageProfileID)
	}
	id, err := readProfile(st, vdc, ref)
	if err == nil {
		d.StorageProfileID = id
	}
	return err
}

// moveDisks moves the disks on the VM's storage profile to another profile, except for independent disks.
func moveDisks(st *store.Store, vm *store.VM, profile string, c *store.VMChange) {
	for i := range vm.Disks {
		if vm.Disks[i].StorageProfileID == vm.StorageProfileID && vm.Disks[i].DiskID == "" {
			vm.Disks[i].StorageProfileID = profile
			giveDefaultIOPS(st, vm.Disks[i:i+1])
			c.Disks = true
		}
	}
}

func readCompute(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
	vdc, err := vdcs.VDCByID(r.Cloud.Store, r.Cloud.Store.VApps[vm.VAppID].VDCID)
	if err != nil {
		return err
	}
	if ref := tree.At("StorageProfile"); ref != nil && ref.Attr("href") != "" {
		id, err := readProfile(r.Cloud.Store, vdc, ref)
		if err != nil {
			return err
		}
		moveDisks(r.Cloud.Store, vm, id, c)
		c.Compute = true
		vm.StorageProfileID = id
	}
	policy := tree.At("ComputePolicy")
	if policy == nil {
		return nil
	}
	c.Compute = true
	sized := *vm
	if err := readPolicies(r.Cloud.Store, vdc, &sized, policy); err != nil {
		return err
	}
	if sized.SizingPolicyID != vm.SizingPolicyID {
		vm.CPUs = sized.CPUs
		vm.CoresPerSocket = sized.CoresPerSocket
		vm.MemoryMiB = sized.MemoryMiB
	}
	vm.SizingPolicyID = sized.SizingPolicyID
	vm.PlacementPolicyID = sized.PlacementPolicyID
	return nil
}

// changeNICs reads the NICs. For a standalone VM, it also connects the vApp to their networks, because no other request
// does so.
func changeNICs(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange) error {
	c.NICs = true
	home := r.Cloud.Store.VApps[vm.VAppID].Clone()
	if home.AutoNature {
		vdc, err := vdcs.VDCByID(r.Cloud.Store, home.VDCID)
		if err != nil {
			return err
		}
		c.Networks = bridges(r.Cloud, vdc, &home, section)
		home.Networks = append(home.Networks, c.Networks...)
	}
	// Validate against the VM in the store, so that its addresses do not count as taken.
	live := r.Cloud.Store.VMs[vm.ID]
	edited := *live
	if err := readNICsFor(r, &home, live, &edited, section); err != nil {
		return err
	}
	vm.NICs = edited.NICs
	vm.PrimaryNIC = edited.PrimaryNIC
	return nil
}

// readNICsFor reads NICs into edited and validates them as NICs of live.
func readNICsFor(r *api.Request, home *store.VApp, live, edited *store.VM, section *xmltree.Node) error {
	saved := live.NICs
	primary := live.PrimaryNIC
	err := readNICs(r.Cloud, home, live, section)
	edited.NICs = live.NICs
	edited.PrimaryNIC = live.PrimaryNIC
	live.NICs = saved
	live.PrimaryNIC = primary
	return err
}

func putNICs(r *api.Request) (*api.Response, error) { return changeVM(r, changeNICs) }

func putCustomization(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
		c.Custom = true
		return readCustomization(tree, &vm.Customization)
	})
}
