// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RemediationType is the action of a VCDRemediation.
// +kubebuilder:validation:Enum=Reset
type RemediationType string

// RemediationReset resets the VM like a hardware reset, without a shutdown of the guest. A VM that is powered off is
// powered on.
const RemediationReset RemediationType = "Reset"

// VCDRemediationSpec is the desired state of a VCDRemediation.
type VCDRemediationSpec struct {
	// strategy defines the number of resets and the time for the Machine to become healthy. Mutable in place.
	// +required
	Strategy VCDRemediationStrategy `json:"strategy,omitempty,omitzero"`
}

// VCDRemediationStrategy defines the actions before a Machine is replaced.
// +kubebuilder:validation:MinProperties=1
type VCDRemediationStrategy struct {
	// type is the action on the VM; Reset if empty.
	// +optional
	// +kubebuilder:default=Reset
	Type RemediationType `json:"type,omitempty"`

	// retryLimit is the number of resets before the Machine is replaced; 1 if empty.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	RetryLimit int32 `json:"retryLimit,omitempty"`

	// timeoutSeconds is the time for the Machine to become healthy after a reset, in seconds; 300 if empty.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=7200
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// VCDRemediationStatus is the observed state of a VCDRemediation.
// +kubebuilder:validation:MinProperties=1
type VCDRemediationStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the remediation, with Ready as their summary. Ready is True when all resets were done
	// and the owner of the Machine was asked to replace it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resets is the number of resets that were requested from VCD.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Resets *int32 `json:"resets,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdremediations,shortName=vcdrem,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster"
// +kubebuilder:printcolumn:name="Resets",type="integer",JSONPath=`.status.resets`,description="Resets that VCD was asked for"
// +kubebuilder:printcolumn:name="Limit",type="integer",JSONPath=`.spec.strategy.retryLimit`,description="Resets before the Machine is replaced"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether nothing is left to try"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="State of the remediation"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDRemediation resets the VM of an unhealthy Machine before the Machine is replaced. A MachineHealthCheck creates it
// from a VCDRemediationTemplate, with the name of the Machine, and deletes it when the Machine is healthy.
type VCDRemediation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec VCDRemediationSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDRemediationStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (r *VCDRemediation) GetConditions() []metav1.Condition { return r.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (r *VCDRemediation) ObserveGeneration() { r.Status.ObservedGeneration = r.Generation }

// SetConditions replaces the conditions.
func (r *VCDRemediation) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VCDRemediationList is a list of VCDRemediations.
type VCDRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDRemediations.
	Items []VCDRemediation `json:"items"`
}

// VCDRemediationTemplateSpec is the desired state of a VCDRemediationTemplate.
type VCDRemediationTemplateSpec struct {
	// template of the VCDRemediations. Mutable in place; takes effect on new VCDRemediations.
	// +required
	Template VCDRemediationTemplateResource `json:"template,omitempty,omitzero"`
}

// VCDRemediationTemplateResource is the template for VCDRemediations.
// +kubebuilder:validation:MinProperties=1
type VCDRemediationTemplateResource struct {
	// metadata has labels and annotations of the VCDRemediations.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the VCDRemediations.
	// +optional
	Spec VCDRemediationSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=vcdremediationtemplates,shortName=vcdremt,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=`.spec.template.spec.strategy.type`,description="What is done to the VM"
// +kubebuilder:printcolumn:name="Limit",type="integer",JSONPath=`.spec.template.spec.strategy.retryLimit`,description="Resets before the Machine is replaced"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDRemediationTemplate is a template of VCDRemediations, for spec.remediation.templateRef of a MachineHealthCheck.
type VCDRemediationTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VCDRemediationTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VCDRemediationTemplateList is a list of VCDRemediationTemplates.
type VCDRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDRemediationTemplates.
	Items []VCDRemediationTemplate `json:"items"`
}
