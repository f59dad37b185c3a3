// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"

	"github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// A csi creates named disks and attaches them to nodes, in the same order as VMware's CSI driver. The driver's module
// cannot be imported, so the csi calls the underlying clients.
type csi struct {
	vmwareClient

	machines *vcdsdk.VdcManager
}

// Properties that the driver sets on each disk.
const (
	busType    = "6"
	busSubType = "VirtualSCSI"
)

func newCSI(a assignment) (client, error) { return &csi{vmwareClient: newVMwareClient(a)}, nil }

func (c *csi) login() (err error) {
	if err := c.vmwareClient.login(); err != nil || c.machines != nil {
		return err
	}
	c.machines, err = vcdsdk.NewVDCManager(c.client, "acme", "acme-vdc")
	return err
}

func (c *csi) kinds() []kind {
	return []kind{
		{name: "volume", create: c.createVolume},
		{name: "cluster of two nodes with a volume", create: c.createCluster},
	}
}

// createVolume creates a disk. Its change is an idempotent second creation.
func (c *csi) createVolume(t *object) error {
	t.remove = func() error { return c.deleteVolume(t.name) }
	t.changes = []change{{"create again", func() error { return c.ensureVolume(t.name) }}}
	return c.ensureVolume(t.name)
}

func (c *csi) ensureVolume(name string) error {
	_, err := c.volume(name)
	if !govcd.ContainsNotFound(err) {
		return err
	}
	profile, err := c.machines.Vdc.FindStorageProfileReference("standard")
	if err != nil {
		return err
	}
	return waitTask(c.machines.Vdc.CreateDisk(&types.DiskCreateParams{Disk: &types.Disk{
		Name:           name,
		SizeMb:         1024,
		BusType:        busType,
		BusSubType:     busSubType,
		Description:    "volume of a test",
		StorageProfile: &types.Reference{HREF: profile.HREF},
	}}))
}

// volume reads a disk from the VDC.
func (c *csi) volume(name string) (*govcd.Disk, error) {
	found, err := c.machines.Vdc.GetDisksByName(name, true)
	if err != nil {
		return nil, err
	}
	return &(*found)[0], nil
}

// deleteVolume deletes a disk if it exists. It returns an error if the disk is attached.
func (c *csi) deleteVolume(name string) error {
	disk, err := c.volume(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	attached, err := disk.AttachedVM()
	if err != nil {
		return err
	}
	if attached != nil {
		return fmt.Errorf("volume %s is attached to VM %s", name, attached.Name)
	}
	return waitTask(disk.Delete())
}

// createCluster creates a vApp with two VMs, and a volume that moves between them.
func (c *csi) createCluster(t *object) error {
	nodes := []string{t.name + "-node-0", t.name + "-node-1"}
	t.remove = func() error { return c.removeCluster(t.name) }
	if _, err := c.machines.GetOrCreateVApp(t.name, "nodes"); err != nil {
		return err
	}
	for _, node := range nodes {
		if err := addNode(c.machines, t.name, node); err != nil {
			return err
		}
	}
	if err := c.ensureVolume(t.name); err != nil {
		return err
	}
	t.changes = []change{
		{"attach the volume of", func() error { return c.attach(t.name, nodes[c.rng.IntN(len(nodes))]) }},
		{"detach the volume of", func() error { return c.detach(t.name) }},
		{
			"power a node on or off in",
			func() error {
				vm, err := c.machines.FindVMByName(t.name, nodes[c.rng.IntN(len(nodes))])
				if err != nil {
					return err
				}
				return togglePower(vm)
			},
		},
	}
	return nil
}

// attach attaches the volume of a cluster to a node. It first detaches it from another node if needed.
func (c *csi) attach(cluster, node string) error {
	vm, err := c.machines.FindVMByName(cluster, node)
	if err != nil {
		return err
	}
	disk, err := c.volume(cluster)
	if err != nil {
		return err
	}
	attached, err := disk.AttachedVM()
	if err != nil {
		return err
	}
	if attached != nil && attached.HREF == vm.VM.HREF {
		return nil
	}
	if attached != nil {
		if err := c.detach(cluster); err != nil {
			return err
		}
	}
	return waitTask(vm.AttachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: disk.Disk.HREF}}))
}

// detach detaches the volume of a cluster from its node, if any.
func (c *csi) detach(cluster string) error {
	disk, err := c.volume(cluster)
	if err != nil {
		return ignoreNotFound(err)
	}
	attached, err := disk.AttachedVM()
	if err != nil || attached == nil {
		return err
	}
	vm, err := c.client.VCDClient.Client.GetVMByHref(attached.HREF)
	if err != nil {
		return err
	}
	return waitTask(vm.DetachDisk(&types.DiskAttachOrDetachParams{Disk: &types.Reference{HREF: disk.Disk.HREF}}))
}

// removeCluster deletes the existing parts of a cluster: its volume and its vApp.
func (c *csi) removeCluster(name string) error {
	if err := c.detach(name); err != nil {
		return err
	}
	if err := c.deleteVolume(name); err != nil {
		return err
	}
	return removeVApp(c.machines, name)
}
