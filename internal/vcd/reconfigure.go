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

// A VMChange is one reconfiguration of a VM: nil and zero fields stay as they are. Extra configuration that
// is not named stays.
type VMChange struct {
	ExtraConfig map[string]string
	DiskMiB     int64     // grows the first disk
	DiskIOPS    int64     // I/O operations per second of the first disk
	NewDisks    []NewDisk // behind those that the VM has, in this order
	CPUs        int64
	MemoryMiB   int64
	// HardwareVersion is one not below the VM's, such as vmx-19.
	HardwareVersion string
}

// hardware reports whether the change is about CPUs, memory or the version of the hardware.
func (change VMChange) hardware() bool {
	return change.CPUs > 0 || change.MemoryMiB > 0 || change.HardwareVersion != ""
}

const (
	// mebibyte is what VCD counts disks in.
	mebibyte = 1 << 20
	// resourceDisk is the resource type of a hard disk.
	resourceDisk = "17"
)

// ReconfigureVM starts one reconfiguration of a VM. The VM is read, and what the change names is sent: all else stays
// as it is. An empty value removes a key. A [VMs.VM] of a moment before, of a VM that is powered off, is what it starts
// from.
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

// reconfigured returns what to post to change a VM: its name and description, and of its sections only those that
// change. VCD leaves sections alone that a request does not have.
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

// apply changes the document of a VM.
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

// mergeExtraConfig leaves only the changed keys of the extra configuration, with their new values. VCD keeps the keys
// that a request does not name, and refuses a request that names one which the user has no right to.
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
			continue // it is not there
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

// changeHardware sets CPUs, memory and the version of the hardware. Extra configuration does not come with it: the
// section with that states CPUs and memory, too.
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
		// Sockets have the same number of cores.
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

// growDisk sets the size of the first disk that is not an independent one, in both sections that state it.
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

// firstDisk returns the first disk of a VM that is not an independent one, and the section that it is in.
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

// refuseDisks says why the disks of a VM cannot be changed.
func refuseDisks(vm *wire.Node, reason string) error {
	return &LookupError{
		Kind:   "VM",
		Name:   vm.Attr("name"),
		Reason: reason,
		Err:    ErrInvalid,
	}
}

func inUnit(sizeMiB int64, unit string) int64 {
	if unit == "byte" {
		return sizeMiB * mebibyte
	}
	return sizeMiB
}

// growItem keeps the hardware section in step with the specification section.
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
