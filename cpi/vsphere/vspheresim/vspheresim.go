// SPDX-License-Identifier: Apache-2.0

// Package vspheresim prepares vCenters of govmomi's simulator for tests: VMs with guest data, tags, and permissions.
package vspheresim

import (
	"context"
	"fmt"
	"net/url"

	"github.com/google/uuid"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	_ "github.com/vmware/govmomi/vapi/simulator" // the endpoint of tags
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// VMs returns the VMs of a vCenter in a stable order.
func VMs(model *simulator.Model) []*simulator.VirtualMachine {
	var out []*simulator.VirtualMachine
	for _, entity := range model.Map().All("VirtualMachine") {
		if vm, ok := entity.(*simulator.VirtualMachine); ok {
			out = append(out, vm)
		}
	}
	return out
}

// Multiply adds copies of a VM to its folder until there are n VMs, which is faster than creating them one by one.
func Multiply(model *simulator.Model, n int) {
	all := VMs(model)
	folder, _ := model.Map().Get(*all[0].Parent).(*simulator.Folder)
	for i := len(all); i < n; i++ {
		vm := &simulator.VirtualMachine{VirtualMachine: all[0].VirtualMachine}
		config := *all[0].Config
		guest := *all[0].Guest
		vm.Self = types.ManagedObjectReference{Type: "VirtualMachine", Value: fmt.Sprintf("vm-copy-%d", i)}
		vm.Name = fmt.Sprintf("copy-%d", i)
		vm.Config = &config
		vm.Guest = &guest
		vm.Config.Uuid = uuid.NewString()
		model.Map().Put(vm)
		folder.ChildEntity = append(folder.ChildEntity, vm.Self)
	}
}

// Boot gives a VM a hostname and addresses, as VMware Tools would report them.
func Boot(vm *mo.VirtualMachine, hostname string, addresses ...string) {
	vm.Guest.HostName = hostname
	vm.Guest.Net = []types.GuestNicInfo{{Network: "VM Network", IpAddress: addresses, DeviceConfigId: 4000}}
}

// Permit allows a user to read the root folder and, if propagate is set, everything below it.
func Permit(ctx context.Context, client *govmomi.Client, user string, propagate bool) error {
	return object.NewAuthorizationManager(client.Client).SetEntityPermissions(ctx, client.ServiceContent.RootFolder,
		[]types.Permission{{Principal: user, RoleId: -1, Propagate: propagate}})
}

// Tag attaches a new tag of a category to objects. It creates the category if it does not exist.
func Tag(
	ctx context.Context, client *govmomi.Client, user *url.Userinfo, category, name string, refs ...mo.Reference,
) error {
	c := rest.NewClient(client.Client)
	if err := c.Login(ctx, user); err != nil {
		return fmt.Errorf("logging in for tags: %w", err)
	}
	manager := tags.NewManager(c)
	var id string
	if found, err := manager.GetCategory(ctx, category); err == nil {
		id = found.ID
	} else {
		id, err = manager.CreateCategory(ctx, &tags.Category{Name: category, Cardinality: "MULTIPLE"})
		if err != nil {
			return fmt.Errorf("making category %s: %w", category, err)
		}
	}
	tag, err := manager.CreateTag(ctx, &tags.Tag{Name: name, CategoryID: id})
	if err != nil {
		return fmt.Errorf("making tag %s: %w", name, err)
	}
	for _, ref := range refs {
		if err := manager.AttachTag(ctx, tag, ref); err != nil {
			return fmt.Errorf("attaching tag %s: %w", name, err)
		}
	}
	return nil
}
