// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is a condition as contract v1beta1 of Cluster API has it.
type Condition struct {
	// type of the condition, in CamelCase.
	Type string `json:"type"`

	// status of the condition: True, False or Unknown.
	Status string `json:"status"`

	// severity of a condition that is False: Error, Warning or Info.
	// +optional
	Severity string `json:"severity,omitempty"`

	// lastTransitionTime is when the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// reason for the status, in CamelCase.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message for people about the last change.
	// +optional
	Message string `json:"message,omitempty"`
}

// ObjectMeta is the metadata that a template passes on.
type ObjectMeta struct {
	// labels of the objects made from the template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the objects made from the template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
