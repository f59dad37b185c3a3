// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A VM is a virtual machine with all its fields.
type VM struct {
	Ref

	Description string // contains the ownership marker
	VApp        Ref
	Status      Status
	Deployed    bool
	Tasks       []Task // unfinished tasks that lock it
	NICs        []NIC
	Disks       []Disk
	ExtraConfig map[string]string
	CPUs        int64
	MemoryMiB   int64

	CoresPerSocket int64 // 0 if unknown
	CPUHotAdd      bool  // CPUs can be added while the VM runs
	MemoryHotAdd   bool  // memory can be added while the VM runs

	HardwareVersion string // such as vmx-19; empty if unknown

	SizingPolicyID    string
	PlacementPolicyID string
	StorageProfile    Ref
}

// IndependentDisks returns the disks that outlive the VM.
func (v VM) IndependentDisks() []Ref {
	var disks []Ref
	for _, d := range v.Disks {
		if d.Independent != nil {
			disks = append(disks, *d.Independent)
		}
	}
	return disks
}

// AddressMode is the IP allocation mode of a NIC, as named in VCD's API.
type AddressMode string

// Address modes.
const (
	ModePool   AddressMode = "POOL"
	ModeDHCP   AddressMode = "DHCP"
	ModeManual AddressMode = "MANUAL"
	ModeNone   AddressMode = "NONE"
)

// A NIC is a network connection of a VM.
type NIC struct {
	Index   int
	Network string // name of the vApp network
	MAC     string
	Mode    AddressMode
	Address string // assigned or detected by VCD; empty while unknown
	// Secondary is the address of the other family, or empty if the NIC has none.
	Secondary string
	// SecondaryMode is the mode of the address of the other family for a new NIC of mode POOL: POOL, or empty for no
	// such address.
	SecondaryMode AddressMode
	Primary       bool
	Adapter       string // VMXNET3 …
}

// A Disk is a disk of a VM. Independent ("named") disks outlive the VM and are never deleted with it.
type Disk struct {
	ID          string // ID within the VM
	SizeMiB     int64
	IOPS        *int64 // I/O operations per second; 0: unlimited; nil: not visible to the user
	Independent *Ref   // the independent disk; nil: the disk is not independent
}

// Resource types of OVF hardware items.
const (
	resourceCPU    = 3
	resourceMemory = 4
)

// VMs is the client for the VMs of vApps.
type VMs struct {
	client    *api.Client
	clock     Clock
	documents *documents
}

// VM reads a VM. It caches the document of a powered-off VM for [VMs.ReconfigureVM].
func (v *VMs) VM(ctx context.Context, id string) (VM, error) {
	read := v.clock.Now()
	got, err := v.client.Do(ctx, api.Call{Method: http.MethodGet, Path: urn.Path(urn.VM, id)})
	if err != nil {
		return VM{}, err
	}
	var doc types.Vm
	if err := wire.DecodeXML(got.Body, &doc); err != nil {
		return VM{}, err
	}
	vm := vmFrom(&doc)
	if vm.ID == "" {
		return VM{}, failure.Unavailable("the response is not a VCD VM")
	}
	if vm.Status == StatusPoweredOff && !vm.Deployed && len(vm.Tasks) == 0 {
		v.documents.put(id, got.Body, read)
	}
	return vm, nil
}

func vmFrom(doc *types.Vm) VM {
	vm := VM{
		Ref:         Ref{ID: urn.Of(urn.VM, doc.ID), Name: doc.Name},
		Description: doc.Description,
		Status:      Status(doc.Status),
		Deployed:    doc.Deployed,
		Tasks:       unfinished(doc.Tasks),
		ExtraConfig: map[string]string{},
		NICs:        nicsFrom(doc.NetworkConnectionSection),
	}
	if vm.ID == "" {
		vm.ID = urn.Of(urn.VM, doc.HREF)
	}
	for _, link := range doc.Link {
		if link.Rel == "up" && urn.Of("", link.HREF) != "" {
			vm.VApp = Ref{ID: urn.Of("", link.HREF), Name: link.Name}
		}
	}
	if profile := doc.StorageProfile; profile != nil {
		vm.StorageProfile = Ref{ID: urn.Of(urn.StorageProfile, profile.HREF), Name: profile.Name}
	}
	if policy := doc.ComputePolicy; policy != nil {
		vm.SizingPolicyID = policyID(policy.VmSizingPolicy)
		vm.PlacementPolicyID = policyID(policy.VmPlacementPolicy)
	}
	if hardware := doc.VirtualHardwareSection; hardware != nil {
		readHardware(hardware, &vm)
	}
	if spec := doc.VmSpecSection; spec != nil {
		readSpec(spec, &vm)
	}
	if can := doc.VMCapabilities; can != nil {
		vm.CPUHotAdd = can.CPUHotAddEnabled
		vm.MemoryHotAdd = can.MemoryHotAddEnabled
	}
	return vm
}

func nicsFrom(section *types.NetworkConnectionSection) []NIC {
	if section == nil {
		return nil
	}
	var nics []NIC
	for _, c := range section.NetworkConnection {
		nics = append(nics, NIC{
			Index:     c.NetworkConnectionIndex,
			Network:   c.Network,
			MAC:       c.MACAddress,
			Mode:      AddressMode(c.IPAddressAllocationMode),
			Address:   c.IPAddress,
			Secondary: c.SecondaryIpAddress,
			Primary:   c.NetworkConnectionIndex == section.PrimaryNetworkConnectionIndex,
			Adapter:   c.NetworkAdapterType,
		})
	}
	return nics
}

// readHardware reads the extra configuration, and the CPUs and memory in case there is no VmSpecSection.
func readHardware(hardware *types.VirtualHardwareSection, vm *VM) {
	for _, config := range hardware.ExtraConfig {
		vm.ExtraConfig[config.Key] = config.Value
	}
	for _, item := range hardware.Item {
		switch item.ResourceType {
		case resourceCPU:
			vm.CPUs = item.VirtualQuantity
		case resourceMemory:
			vm.MemoryMiB = item.VirtualQuantity
		}
	}
}

// readSpec reads CPUs, their cores, memory, the hardware version and the disks. It overrides the sizes that readHardware read.
func readSpec(spec *types.VmSpecSection, vm *VM) {
	if spec.NumCpus != nil {
		vm.CPUs = int64(*spec.NumCpus)
	}
	if spec.NumCoresPerSocket != nil {
		vm.CoresPerSocket = int64(*spec.NumCoresPerSocket)
	}
	if spec.MemoryResourceMb != nil {
		vm.MemoryMiB = spec.MemoryResourceMb.Configured
	}
	if spec.HardwareVersion != nil {
		vm.HardwareVersion = spec.HardwareVersion.Value
	}
	if spec.DiskSection == nil {
		return
	}
	for _, settings := range spec.DiskSection.DiskSettings {
		disk := Disk{ID: settings.DiskId, SizeMiB: settings.SizeMb}
		if named := settings.Disk; named != nil {
			disk.Independent = &Ref{ID: urn.Of(urn.Disk, named.HREF), Name: named.Name}
		}
		if settings.IopsAllocation != nil {
			disk.IOPS = &settings.IopsAllocation.Reservation
		}
		vm.Disks = append(vm.Disks, disk)
	}
}

// PowerOn starts powering a VM on.
func (v *VMs) PowerOn(ctx context.Context, id string) (Task, error) {
	v.documents.take(id)
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/power/action/powerOn", "", nil)
}

// Reset starts resetting a VM that is powered on, without shutting down its guest.
func (v *VMs) Reset(ctx context.Context, id string) (Task, error) {
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/power/action/reset", "", nil)
}

// Shutdown starts a graceful shutdown of the guest. It requires VMware Tools in the guest, and its duration is
// unlimited. The VM stays deployed, so the caller must call [VMs.PowerOff] afterward.
func (v *VMs) Shutdown(ctx context.Context, id string) (Task, error) {
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/power/action/shutdown", "", nil)
}

// PowerOff starts powering off and undeploying a VM, which its deletion requires.
func (v *VMs) PowerOff(ctx context.Context, id string) (Task, error) {
	return startUndeploying(ctx, v.client, urn.Path(urn.VM, id), "powerOff")
}

// Consolidate starts converting the disks of a linked clone to full disks, which can be expanded. It requires
// [RightConsolidate]. For a VM that is not a linked clone, the task finishes immediately.
func (v *VMs) Consolidate(ctx context.Context, id string) (Task, error) {
	v.documents.take(id)
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/action/consolidate", "", nil)
}

// DeleteVM starts the deletion of a VM, which must be powered off and undeployed. Its independent disks must be
// detached before.
func (v *VMs) DeleteVM(ctx context.Context, id string) (Task, error) {
	return startXML(ctx, v.client, http.MethodDelete, urn.Path(urn.VM, id), "", nil)
}

// DetachDisk starts detaching an independent disk, given by its URN, from a VM. The disk is kept.
func (v *VMs) DetachDisk(ctx context.Context, vmID, diskID string) (Task, error) {
	v.documents.take(vmID)
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, vmID)+"/disk/action/detach", wire.MIMEDiskParams,
		wire.DiskParams{Disk: wire.XMLRef{HRef: v.client.Href(urn.Disk, diskID)}})
}
