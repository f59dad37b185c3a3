// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDMachineTemplateResource is the spec of machines.
type VCDMachineTemplateResource struct {
	// spec of the machines.
	Spec VCDMachineSpec `json:"spec"`
}

// VCDMachineTemplateSpec is the desired state of a VCDMachineTemplate.
type VCDMachineTemplateSpec struct {
	// template of the machines.
	Template VCDMachineTemplateResource `json:"template"`
}

// VCDMachineTemplateStatus has no fields.
type VCDMachineTemplateStatus struct{}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdmachinetemplates,shortName=vcdmt,scope=Namespaced,categories=cluster-api
// +kubebuilder:deprecatedversion:warning="infrastructure.cluster.x-k8s.io/v1beta1 VCDMachineTemplate is deprecated; use infrastructure.cluster.x-k8s.io/v1beta4 VCDMachineTemplate"

// VCDMachineTemplate is a template of VCDMachines.
type VCDMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec VCDMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is empty.
	// +optional
	Status VCDMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VCDMachineTemplateList is a list of VCDMachineTemplates.
type VCDMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDMachineTemplates.
	Items []VCDMachineTemplate `json:"items"`
}
