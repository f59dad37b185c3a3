// SPDX-License-Identifier: Apache-2.0

package cpi

import corev1 "k8s.io/api/core/v1"

// slimNode leaves out of the cache of Nodes what no controller here reads, most of all the list of images. Nodes are
// written by patches of what differs between two cached ones, or after they were read anew.
func slimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
		node.Status.VolumesInUse = nil
		node.Status.VolumesAttached = nil
	}
	return obj, nil
}
