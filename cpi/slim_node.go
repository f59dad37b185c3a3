// SPDX-License-Identifier: Apache-2.0

package cpi

import corev1 "k8s.io/api/core/v1"

// slimNode drops fields of Nodes from the cache that no controller here reads, above all the list of images. Writes are
// not affected: Nodes are written as patches between two cached objects, or after a live read.
func slimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
		node.Status.VolumesInUse = nil
		node.Status.VolumesAttached = nil
	}
	return obj, nil
}
