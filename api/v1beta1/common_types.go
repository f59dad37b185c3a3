// SPDX-License-Identifier: Apache-2.0

package v1beta1

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
