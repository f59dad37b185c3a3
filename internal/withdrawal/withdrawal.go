// SPDX-License-Identifier: Apache-2.0

// Package withdrawal defines how a Node leaves all load balancers before its VM is powered off. The manager excludes the
// Node and requests the withdrawal. The cloud controller manager updates the load balancers, and confirms the
// withdrawal. Without a confirmation, clients of a Service time out until a health monitor notices that the node is gone.
package withdrawal

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// RequestedAnnotation on a Node is the time (RFC 3339) when the manager requested its withdrawal.
	RequestedAnnotation = "infrastructure.cluster.x-k8s.io/withdrawal-requested-at"
	// ConfirmedAnnotation on a Node is the value of RequestedAnnotation to which the cloud controller manager responds:
	// since then, no load balancer sends requests to the node.
	ConfirmedAnnotation = "infrastructure.cluster.x-k8s.io/withdrawal-confirmed"
)

// Request excludes a Node from all load balancers, and requests its withdrawal.
func Request(node *corev1.Node, now time.Time) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Labels[corev1.LabelNodeExcludeBalancers] = ""
	node.Annotations[RequestedAnnotation] = now.UTC().Format(time.RFC3339)
}

// IsRequested reports whether the withdrawal of a Node is requested.
func IsRequested(node *corev1.Node) bool { return node.Annotations[RequestedAnnotation] != "" }

// Confirm records that no load balancer sends requests to a Node whose withdrawal is requested.
func Confirm(node *corev1.Node) {
	node.Annotations[ConfirmedAnnotation] = node.Annotations[RequestedAnnotation]
}

// IsConfirmed reports whether the requested withdrawal of a Node is confirmed.
func IsConfirmed(node *corev1.Node) bool {
	return IsRequested(node) && node.Annotations[ConfirmedAnnotation] == node.Annotations[RequestedAnnotation]
}
