// SPDX-License-Identifier: Apache-2.0

// Package notes reads and writes what annotations of objects hold about VCD.
package notes

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Set sets an annotation of obj, which is not saved.
func Set(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// VApps are the URNs of the vApps that VMs of a cluster were made in.
func VApps(c *infrav1.VCDCluster) []string {
	return URNs(c.Annotations[infrav1.VAppsAnnotation])
}

// DetachedDisks lists the independent disks that were detached from VMs of c.
func DetachedDisks(c *infrav1.VCDCluster) []string {
	var disks []string
	for key, name := range c.Annotations {
		if id, ok := strings.CutPrefix(key, infrav1.DetachedDiskAnnotationPrefix); ok {
			disks = append(disks, DiskText(vcd.Ref{ID: "urn:vcloud:disk:" + id, Name: name}))
		}
	}
	return disks
}

// DiskText returns the name and URN of a disk, for messages.
func DiskText(disk vcd.Ref) string { return disk.Name + " (" + disk.ID + ")" }

// EntityID returns the URN of the runtime defined entity of a cluster; empty if there is none yet.
func EntityID(c *infrav1.VCDCluster) string {
	if c.Spec.RDE.ID != "" {
		return c.Spec.RDE.ID
	}
	if strings.HasPrefix(c.Spec.InfraID, "urn:vcloud:entity:") {
		return c.Spec.InfraID
	}
	return c.Annotations[infrav1.RDEIDAnnotation]
}

// URNs reads a list.
func URNs(annotation string) []string {
	return strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' })
}

// AddURN adds a URN to the list in an annotation of obj, which is not saved, and reports whether it was missing.
func AddURN(obj client.Object, key, urn string) bool {
	known := URNs(obj.GetAnnotations()[key])
	if slices.Contains(known, urn) {
		return false
	}
	Set(obj, key, strings.Join(append(known, urn), ","))
	return true
}
