// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// vmProperties are the properties that are read of VMs. entityProperties are those of the objects that contain them.
var (
	vmProperties = []string{
		"name",
		"parent",
		"parentVApp",
		"resourcePool",
		"config.uuid",
		"config.template",
		"config.guestId",
		"config.hardware.numCPU",
		"config.hardware.memoryMB",
		"runtime.powerState",
		"runtime.connectionState",
		"runtime.host",
		"guest.net",
		"guest.hostName",
		"guest.ipStack",
		extraConfig(metadataKey),
		extraConfig(metadataEncodingKey),
	}
	entityProperties = []string{"name", "parent"}
)

func extraConfig(key string) string { return fmt.Sprintf("config.extraConfig[%q]", key) }

// An entity contains the properties of an object in the inventory.
type entity map[string]any

// An inventory is the result of one read of a vCenter: the VMs, and all objects that contain them.
type inventory map[types.ManagedObjectReference]entity

// text returns a property as text. It returns an empty string for a missing property.
func (e entity) text(name string) string {
	switch v := e[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (e entity) number(name string) int32 {
	n, _ := e[name].(int32)
	return n
}

func (e entity) ref(name string) (types.ManagedObjectReference, bool) {
	ref, ok := e[name].(types.ManagedObjectReference)
	return ref, ok
}

// guest returns the data that VMware Tools report.
func (e entity) guest() guest {
	g := guest{hostname: e.text("guest.hostName"), fallback: e.text("name")}
	if nics, ok := e["guest.net"].(types.ArrayOfGuestNicInfo); ok {
		for _, nic := range nics.GuestNicInfo {
			g.nics = append(g.nics, guestNIC{nic.Network, nic.DeviceConfigId == -1, nic.IpAddress})
		}
	}
	if stacks, ok := e["guest.ipStack"].(types.ArrayOfGuestStackInfo); ok {
		for _, stack := range stacks.GuestStackInfo {
			if stack.DnsConfig != nil && g.domain == "" {
				g.domain = stack.DnsConfig.DomainName
			}
		}
	}
	g.static = e.static()
	return g
}

func (e entity) static() []netip.Addr {
	value := func(key string) string {
		option, _ := e[extraConfig(key)].(types.OptionValue)
		text, _ := option.Value.(string)
		return text
	}
	metadata := value(metadataKey)
	if metadata == "" {
		return nil
	}
	return staticAddresses(metadata, value(metadataEncodingKey))
}

// readInventory reads all objects in the view with one request.
func readInventory(ctx context.Context, c *connection) (inventory, error) {
	up := &types.SelectionSpec{Name: "up"}
	step := func(name, kind, path string) types.BaseSelectionSpec {
		return &types.TraversalSpec{
			SelectionSpec: types.SelectionSpec{Name: name},
			Type:          kind,
			Path:          path,
			SelectSet:     []types.BaseSelectionSpec{up},
		}
	}
	request := types.RetrieveProperties{SpecSet: []types.PropertyFilterSpec{{
		ObjectSet: []types.ObjectSpec{{
			Obj:  c.view.Reference(),
			Skip: types.NewBool(true),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{
				Type: c.view.Reference().Type,
				Path: "view",
				SelectSet: []types.BaseSelectionSpec{
					step("up", "ManagedEntity", "parent"),
					step("vApp", "VirtualMachine", "parentVApp"),
					step("host", "VirtualMachine", "runtime.host"),
					step("pool", "VirtualMachine", "resourcePool"),
				},
			}},
		}},
		PropSet: []types.PropertySpec{
			{Type: "VirtualMachine", PathSet: vmProperties},
			{Type: "ManagedEntity", PathSet: entityProperties},
		},
	}}}
	response, err := property.DefaultCollector(c.client).RetrieveProperties(ctx, request)
	if err != nil {
		return nil, err
	}
	out := inventory{}
	for _, content := range response.Returnval {
		properties := entity{}
		for _, p := range content.PropSet {
			properties[p.Name] = p.Val
		}
		out[content.Obj] = properties
	}
	return out, nil
}

// vms returns the VMs, without templates, in a stable order.
func (v inventory) vms() []types.ManagedObjectReference {
	var all []types.ManagedObjectReference
	for ref := range v {
		if template, _ := v[ref]["config.template"].(bool); ref.Type == "VirtualMachine" && !template {
			all = append(all, ref)
		}
	}
	slices.SortFunc(all, func(a, b types.ManagedObjectReference) int { return strings.Compare(a.Value, b.Value) })
	return all
}

// ancestors returns the object and its ancestors, from the nearest to the farthest.
func (v inventory) ancestors(ref types.ManagedObjectReference, ok bool) []types.ManagedObjectReference {
	var all []types.ManagedObjectReference
	for ok && !slices.Contains(all, ref) {
		all = append(all, ref)
		ref, ok = v[ref].ref("parent")
	}
	return all
}

// places returns the objects that contain a VM, from the nearest to the farthest: the VM itself, its host, cluster,
// resource pools, folders and datacenter.
func (v inventory) places(vm types.ManagedObjectReference) []types.ManagedObjectReference {
	properties := v[vm]
	folders := v.ancestors(properties.ref("parent"))
	if len(folders) == 0 {
		folders = v.ancestors(properties.ref("parentVApp"))
	}
	hosts := v.ancestors(properties.ref("runtime.host"))
	pools := v.ancestors(properties.ref("resourcePool"))
	lists := [][]types.ManagedObjectReference{
		{vm},
		filter(hosts, isCompute),
		filter(pools, isPool),
		filter(folders, isFolder),
		filter(hosts, isFolder),
		filter(folders, isTop),
		filter(hosts, isTop),
	}
	var all []types.ManagedObjectReference
	for _, list := range lists {
		for _, ref := range list {
			if !slices.Contains(all, ref) {
				all = append(all, ref)
			}
		}
	}
	return append(slices.DeleteFunc(slices.Clone(all), v.isRoot), slices.DeleteFunc(all,
		func(ref types.ManagedObjectReference) bool { return !v.isRoot(ref) })...)
}

func filter(
	all []types.ManagedObjectReference, keep func(types.ManagedObjectReference) bool,
) []types.ManagedObjectReference {
	return slices.DeleteFunc(slices.Clone(all), func(ref types.ManagedObjectReference) bool { return !keep(ref) })
}

func isCompute(ref types.ManagedObjectReference) bool {
	return ref.Type == "HostSystem" || strings.HasSuffix(ref.Type, "ComputeResource")
}

func isPool(ref types.ManagedObjectReference) bool {
	return ref.Type == "ResourcePool" || ref.Type == "VirtualApp"
}

func isTop(ref types.ManagedObjectReference) bool { return ref.Type == "Datacenter" }

func isFolder(ref types.ManagedObjectReference) bool { return ref.Type == "Folder" }

// isRoot reports whether an object is a folder of datacenters. Such folders are farther from a VM than its datacenter.
func (v inventory) isRoot(ref types.ManagedObjectReference) bool {
	if ref.Type != "Folder" {
		return false
	}
	return !slices.ContainsFunc(v.ancestors(ref, true), isTop)
}

// datacenter returns the path of a VM's datacenter, without the root folder.
func (v inventory) datacenter(vm types.ManagedObjectReference) string {
	all := v.places(vm)
	at := slices.IndexFunc(all, isTop)
	if at < 0 {
		return ""
	}
	var names []string
	for _, ref := range v.ancestors(all[at], true) {
		if _, inside := v[ref].ref("parent"); inside { // only the root folder has no parent
			names = append(names, v[ref].text("name"))
		}
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// within reports whether a datacenter is one of the configured ones, which are names or paths.
func within(path string, datacenters []string) bool {
	return len(datacenters) == 0 || slices.ContainsFunc(datacenters, func(want string) bool {
		want = strings.Trim(want, "/")
		return path != "" && (want == path || want == path[strings.LastIndex(path, "/")+1:])
	})
}

// findDatacenter returns an error if a datacenter without visible VMs does not exist.
func findDatacenter(ctx context.Context, c *connection, name string) error {
	found, err := object.NewSearchIndex(c.client).FindByInventoryPath(ctx, strings.Trim(name, "/"))
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("%w: %q is not visible: correct its name, or grant the user access to it", errDatacenter, name)
	}
	return nil
}

// exists reports whether vCenter shows a VM. gone means that vCenter reports that the VM does not exist.
func exists(ctx context.Context, c *connection, ref types.ManagedObjectReference) (shown, gone bool, err error) {
	var vm mo.VirtualMachine
	err = property.DefaultCollector(c.client).RetrieveOne(ctx, ref, []string{"runtime.powerState"}, &vm)
	switch {
	case err == nil:
		return true, false, nil
	case hasFault(err, &types.ManagedObjectNotFound{}):
		return false, true, nil
	case hasFault(err, &types.NoPermission{}):
		return false, false, nil
	}
	return false, false, err
}

// findUUID returns the VM with a BIOS UUID in any datacenter.
func findUUID(ctx context.Context, c *connection, uuid string) (types.ManagedObjectReference, bool, error) {
	found, err := object.NewSearchIndex(c.client).FindByUuid(ctx, nil, uuid, true, nil)
	if err != nil || found == nil {
		return types.ManagedObjectReference{}, false, err
	}
	return found.Reference(), true, nil
}
