// SPDX-License-Identifier: Apache-2.0

// Package notes reads and writes the records about VCD in Kubernetes objects.
package notes

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Set sets an annotation of obj in memory.
func Set(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// DetachedDisks lists the independent disks that were detached from VMs of c, for messages.
func DetachedDisks(c *infrav1.VCDCluster) []string {
	var disks []string
	for id, name := range c.Spec.RecordedState.DetachedDisks {
		disks = append(disks, DiskText(vcd.Ref{ID: "urn:vcloud:disk:" + id, Name: name}))
	}
	return disks
}

// DiskText returns the name and URN of a disk, for messages.
func DiskText(disk vcd.Ref) string { return disk.Name + " (" + disk.ID + ")" }

// EntityID returns the URN of the runtime defined entity of a cluster; empty if it has none yet.
func EntityID(c *infrav1.VCDCluster) string {
	if c.Spec.RDE.ID != "" {
		return c.Spec.RDE.ID
	}
	if strings.HasPrefix(c.Spec.InfraID, "urn:vcloud:entity:") {
		return c.Spec.InfraID
	}
	return c.Spec.RecordedState.RDEID
}
