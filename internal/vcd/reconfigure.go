// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A VMChange is one reconfiguration of a VM. Nil and zero fields leave the current values unchanged.
type VMChange struct {
	ExtraConfig map[string]string // an empty value removes the key; other keys are kept
	DiskMiB     int64             // new size of the first disk, which cannot shrink
	DiskIOPS    int64             // I/O operations per second of the first disk
	NewDisks    []NewDisk         // added after the existing disks, in this order
	CPUs        int64
	MemoryMiB   int64
	// HardwareVersion is a version of virtual hardware, such as vmx-19, that is not older than the VM's.
	HardwareVersion string
}

// hardware reports whether the change sets CPUs, memory or the version of virtual hardware.
func (change VMChange) hardware() bool {
	return change.CPUs > 0 || change.MemoryMiB > 0 || change.HardwareVersion != ""
}

const (
	// mebibyte is the unit of disk sizes in VCD, in bytes.
	mebibyte = 1 << 20
	// resourceDisk is the OVF resource type of a hard disk.
	resourceDisk = "17"
)

// ReconfigureVM starts one reconfiguration of a VM. It reads the VM and sends only the sections that change. If
// [VMs.VM] read the VM a few seconds ago and the VM was powered off, ReconfigureVM reuses that document.
func (v *VMs) ReconfigureVM(ctx context.Context, id string, change VMChange) (Task, error) {
	document, ok := v.documents.take(id)
	if !ok {
		got, err := v.client.Do(ctx, api.Call{Method: http.MethodGet, Path: urn.Path(urn.VM, id)})
		if err != nil {
			return Task{}, err
		}
		document = got.Body
	}
	body, err := reconfigured(document, change, v.diskSettings(change.NewDisks)...)
	if err != nil {
		return Task{}, err
	}
	return startXML(ctx, v.client, http.MethodPost, urn.Path(urn.VM, id)+"/action/reconfigureVm", wire.MIMEVM, body)
}

// reconfigured returns the body of a request that changes a VM. It contains the name, the description and the sections
// that change. VCD keeps sections that are missing from a request.
func reconfigured(document []byte, change VMChange, added ...wire.DiskSettings) ([]byte, error) {
	vm, err := wire.ParseXML(document)
	if err != nil {
		return nil, err
	}
	if err := change.apply(vm); err != nil {
		return nil, err
	}
	if len(added) > 0 {
		if err := addDisks(vm, added); err != nil {
			return nil, err
		}
	}
	vm.Keep(func(section *wire.Node) bool {
		switch section.Name.Local {
		case "Description":
			return true
		case "VirtualHardwareSection":
			return len(change.ExtraConfig) > 0
		case "VmSpecSection":
			return change.DiskMiB > 0 || change.DiskIOPS > 0 || change.hardware() || len(added) > 0
		}
		return false
	})
	return vm.Document(), nil
}

// apply applies the change, except for new disks, to the document of a VM.
func (change VMChange) apply(vm *wire.Node) error {
	if change.DiskMiB > 0 {
		if err := growDisk(vm, change.DiskMiB); err != nil {
			return err
		}
	}
	if change.DiskIOPS > 0 {
		if err := setIOPS(vm, change.DiskIOPS); err != nil {
			return err
		}
	}
	if change.hardware() {
		if err := changeHardware(vm, change); err != nil {
			return err
		}
	}
	if len(change.ExtraConfig) > 0 {
		return mergeExtraConfig(vm, change.ExtraConfig)
	}
	return nil
}

// mergeExtraConfig replaces the extra configuration in the document with the changed keys and their new values. VCD
// keeps keys that are missing from a request. It rejects a request that contains a key for which the user lacks the
// right.
func mergeExtraConfig(vm *wire.Node, changes map[string]string) error {
	hardware := vm.First("VirtualHardwareSection")
	if hardware == nil {
		return &LookupError{
			Kind:   "VM",
			Name:   vm.Attr("name"),
			Err:    ErrInvalid,
			Reason: "has no hardware section that is visible to this user",
		}
	}
	left := maps.Clone(changes)
	hardware.Keep(func(child *wire.Node) bool {
		if child.Name.Local != "ExtraConfig" {
			return true
		}
		key := child.Attr("key")
		value, ok := left[key]
		if ok {
			child.SetAttr("value", value)
			delete(left, key)
		}
		return ok
	})
	var added []*wire.Node
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if left[key] == "" {
			continue // the key to remove does not exist
		}
		n, err := wire.NewNode(wire.ExtraConfig{XmlnsVMW: wire.NamespaceVMW, XmlnsOVF: wire.NamespaceOVF, Key: key, Value: left[key]})
		if err != nil {
			return err
		}
		added = append(added, n)
	}
	hardware.InsertBefore("Link", added...)
	return nil
}

// changeHardware sets CPUs, memory and the version of virtual hardware. It rejects a change that also sets extra
// configuration, because the section with the extra configuration also contains CPUs and memory.
func changeHardware(vm *wire.Node, change VMChange) error {
	spec := vm.First("VmSpecSection")
	if spec == nil || len(change.ExtraConfig) > 0 {
		return &LookupError{
			Kind:   "VM",
			Name:   vm.Attr("name"),
			Err:    ErrInvalid,
			Reason: "has no hardware that is visible to this user",
		}
	}
	spec.SetAttr("Modified", "true")
	if change.CPUs > 0 {
		spec.SetTextAt(strconv.FormatInt(change.CPUs, 10), "NumCpus")
		// All sockets have the same number of cores.
		cores, err := strconv.ParseInt(spec.Text("NumCoresPerSocket"), 10, 64)
		if err != nil || cores < 1 || change.CPUs%cores != 0 {
			spec.SetTextAt("1", "NumCoresPerSocket")
		}
	}
	if change.MemoryMiB > 0 {
		spec.SetTextAt(strconv.FormatInt(change.MemoryMiB, 10), "MemoryResourceMb", "Configured")
	}
	if change.HardwareVersion != "" {
		spec.SetTextAt(change.HardwareVersion, "HardwareVersion")
	}
	return nil
}

// growDisk sets the size of the first disk that is not independent, in both sections that contain it.
func growDisk(vm *wire.Node, sizeMiB int64) error {
	spec, disk, err := firstDisk(vm)
	if err != nil {
		return err
	}
	current, err := strconv.ParseInt(disk.Text("SizeMb"), 10, 64)
	if err != nil {
		return refuseDisks(vm, "has a disk of unknown size")
	}
	if sizeMiB < current {
		return refuseDisks(vm, fmt.Sprintf("has a disk of %d MiB, which cannot shrink to %d MiB", current, sizeMiB))
	}
	spec.SetAttr("Modified", "true")
	disk.First("SizeMb").SetText(strconv.FormatInt(sizeMiB, 10))
	if quantity := disk.First("VirtualQuantity"); quantity != nil {
		quantity.SetText(strconv.FormatInt(inUnit(sizeMiB, disk.Text("VirtualQuantityUnit")), 10))
	}
	growItem(vm.First("VirtualHardwareSection"), disk.Text("DiskId"), sizeMiB)
	return nil
}

// firstDisk returns the first disk of a VM that is not independent, and its VmSpecSection.
func firstDisk(vm *wire.Node) (spec, disk *wire.Node, err error) {
	spec = vm.First("VmSpecSection")
	if spec == nil || spec.First("DiskSection") == nil {
		return nil, nil, refuseDisks(vm, "has no disks that are visible to this user")
	}
	for _, disk := range spec.First("DiskSection").Nodes("DiskSettings") {
		if disk.First("Disk") == nil {
			return spec, disk, nil
		}
	}
	return nil, nil, refuseDisks(vm, "has no separate disk")
}

// refuseDisks returns a [LookupError] with the reason why the disks of a VM cannot be changed.
func refuseDisks(vm *wire.Node, reason string) error {
	return &LookupError{
		Kind:   "VM",
		Name:   vm.Attr("name"),
		Reason: reason,
		Err:    ErrInvalid,
	}
}

// inUnit converts a size to the unit of a VirtualQuantity: bytes, or MiB for any other unit.
func inUnit(sizeMiB int64, unit string) int64 {
	if unit == "byte" {
		return sizeMiB * mebibyte
	}
	return sizeMiB
}

// growItem sets the size of a disk in the VirtualHardwareSection, which must agree with the VmSpecSection.
func growItem(hardware *wire.Node, diskID string, sizeMiB int64) {
	if hardware == nil {
		return
	}
	for _, item := range hardware.Nodes("Item") {
		if item.Text("ResourceType") != resourceDisk || item.Text("InstanceID") != diskID {
			continue
		}
		if host := item.First("HostResource"); host != nil && host.Attr("capacity") != "" {
			host.SetAttr("capacity", strconv.FormatInt(sizeMiB, 10))
		}
		if item.Text("VirtualQuantity") != "" {
			item.First("VirtualQuantity").SetText(strconv.FormatInt(inUnit(sizeMiB, item.Text("VirtualQuantityUnits")),
				10))
		}
	}
}
