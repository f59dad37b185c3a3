// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// A capvcd creates vApps with VMs, and entities of clusters, like VMware's CAPVCD.
type capvcd struct{ vmwareClient }

func newCAPVCD(a assignment) (client, error) { return &capvcd{newVMwareClient(a)}, nil }

func (c *capvcd) kinds() []kind {
	return []kind{
		{name: "vApp", create: c.createVApp},
		{name: "cluster entity", create: c.createEntity},
	}
}

// createVApp creates a vApp with one VM, which is named like a node.
func (c *capvcd) createVApp(t *object) error {
	machines, err := vcdsdk.NewVDCManager(c.client, "acme", "acme-vdc")
	if err != nil {
		return err
	}
	t.remove = func() error { return removeVApp(machines, t.name) }
	if _, err := machines.GetOrCreateVApp(t.name, "nodes"); err != nil {
		return err
	}
	if err := addNode(machines, t.name, "node-0"); err != nil {
		return err
	}
	added := 0
	withVM := func(do func(vm *govcd.VM) error) error {
		vm, err := machines.FindVMByName(t.name, "node-0")
		if err != nil {
			return err
		}
		return do(vm)
	}
	t.changes = []change{
		{
			"add a VM to",
			func() error {
				added++
				return addNode(machines, t.name, fmt.Sprintf("node-%d", added))
			},
		},
		{
			"tag",
			func() error {
				return machines.AddMetadataToVApp(t.name, map[string]string{"CapvcdInfraId": text(c.rng)})
			},
		},
		{"power a VM on or off in", func() error { return withVM(togglePower) }},
		{
			"reboot a VM in",
			func() error {
				return withVM(func(vm *govcd.VM) error {
					if on, err := vm.IsDeployed(); err != nil || !on {
						return err
					}
					return machines.RebootVm(vm)
				})
			},
		},
		{
			"set user data of a VM in",
			func() error {
				return withVM(func(vm *govcd.VM) error {
					return waitTask(machines.SetMultiVmExtraConfigKeyValuePairs(vm,
						map[string]string{"guestinfo.userdata": text(c.rng)}, true))
				})
			},
		},
	}
	return nil
}

// addNode adds a VM to a vApp.
func addNode(machines *vcdsdk.VdcManager, vApp, name string) error {
	return waitTask(machines.AddNewVM(name, vApp, "kubernetes", "ubuntu-2404-kube-v1.36.3", "", "small", "standard", ""))
}

// togglePower powers a VM on or off.
func togglePower(vm *govcd.VM) error {
	on, err := vm.IsDeployed()
	if err != nil {
		return err
	}
	if on {
		return waitTask(vm.Undeploy())
	}
	return waitTask(vm.PowerOn())
}

// removeVApp deletes a vApp if it exists. VMware's client may report an existing vApp as not found.
func removeVApp(machines *vcdsdk.VdcManager, name string) error {
	err := machines.DeleteVApp(name)
	if errors.Is(err, govcd.ErrorEntityNotFound) {
		return nil
	}
	return err
}

// createEntity creates the entity of a cluster. Several programs write to its status.
func (c *capvcd) createEntity(t *object) error {
	ofType, err := c.client.VCDClient.GetRdeType("vmware", "capvcdCluster", "1.3.0")
	if err != nil {
		return err
	}
	created, err := ofType.CreateRde(types.DefinedEntity{Name: t.name, Entity: clusterEntity(t.name)}, nil)
	if err != nil {
		return err
	}
	t.remove = created.Delete
	if err := created.Resolve(); err != nil {
		return err
	}
	t.changes = []change{{"report to", func() error { return c.report(created.DefinedEntity.ID) }}}
	return nil
}

// report writes to the status of a cluster concurrently as CAPVCD, the cloud provider and the CSI driver. Each adds a
// resource and an error, then removes both.
func (c *capvcd) report(entity string) error {
	components := []string{vcdsdk.ComponentCAPVCD, vcdsdk.ComponentCPI, vcdsdk.ComponentCSI}
	failures := make(chan error)
	for _, component := range components {
		name := text(c.rng)
		go func() { failures <- c.reportAs(component, entity, name) }()
	}
	var all error
	for range components {
		all = errors.Join(all, <-failures)
	}
	return all
}

func (c *capvcd) reportAs(component, entity, name string) error {
	ctx := context.Background()
	status := vcdsdk.NewRDEManager(c.client, entity, component, "1.6.1")
	if err := status.AddToVCDResourceSet(ctx, component, vcdsdk.VcdResourceVirtualService, name, name, nil); err != nil {
		return err
	}
	problem := vcdsdk.BackendError{Name: name, OccurredAt: time.Now(), VcdResourceName: name}
	if err := status.AddToErrorSet(ctx, component, problem, vcdsdk.DefaultRollingWindowSize); err != nil {
		return err
	}
	if err := status.RemoveErrorByNameOrIdFromErrorSet(ctx, component, name, "", ""); err != nil {
		return err
	}
	return status.RemoveFromVCDResourceSet(ctx, component, vcdsdk.VcdResourceVirtualService, name)
}
