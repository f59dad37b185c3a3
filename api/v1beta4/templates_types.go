// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDMachineTemplateSpec is the desired state of a VCDMachineTemplate.
type VCDMachineTemplateSpec struct {
	// template of the machines. Immutable: create a new VCDMachineTemplate to change machines.
	// +required
	Template VCDMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// VCDMachineTemplateResource is metadata and spec of machines.
type VCDMachineTemplateResource struct {
	// metadata of the machines. Immutable.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the machines. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",fieldPath=".providerID",message="cannot be in a template: it is unique for each VM"
	// +kubebuilder:validation:XValidation:rule="!has(self.recordedState)",fieldPath=".recordedState",reason=FieldValueForbidden,message="cannot be in a template: it belongs to a single VM, and the controllers set it"
	// +kubebuilder:validation:XValidation:rule="!has(self.networks) || self.networks.all(n, n.addressSource != 'Manual')",fieldPath=".networks",message="cannot have addressSource Manual in a template: machines would share the addresses"
	Spec VCDMachineSpec `json:"spec,omitempty,omitzero"`
}

// VCDMachineTemplateStatus is the capacity of a machine, for autoscalers.
// +kubebuilder:validation:MinProperties=1
type VCDMachineTemplateStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the template.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity of a machine: cpu, memory, ephemeral-storage. It lets an autoscaler scale from zero.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo of a machine.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo is the platform of a machine's Node.
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture of the node.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem of the node.
	// +optional
	// +kubebuilder:validation:Enum=linux;windows
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdmachinetemplates,shortName=vcdmt,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Template",type="string",JSONPath=`.spec.template.spec.template`,description="vApp template"
// +kubebuilder:printcolumn:name="Sizing",type="string",JSONPath=`.spec.template.spec.sizingPolicy`,description="VM sizing policy"
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=`.status.capacity.cpu`,description="CPUs of a machine"
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=`.status.capacity.memory`,description="Memory of a machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the capacity is known"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDMachineTemplate is a template of VCDMachines.
type VCDMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VCDMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (t *VCDMachineTemplate) GetConditions() []metav1.Condition { return t.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (t *VCDMachineTemplate) ObserveGeneration() { t.Status.ObservedGeneration = t.Generation }

// SetConditions replaces the conditions.
func (t *VCDMachineTemplate) SetConditions(conditions []metav1.Condition) {
	t.Status.Conditions = conditions
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

// VCDClusterTemplateSpec is the desired state of a VCDClusterTemplate.
type VCDClusterTemplateSpec struct {
	// template of the clusters. Immutable.
	// +required
	Template VCDClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// VCDClusterTemplateResource is metadata and spec of clusters.
type VCDClusterTemplateResource struct {
	// metadata of the clusters. Immutable.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the clusters. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.infraID)",fieldPath=".infraID",message="cannot be in a template: it is unique for each cluster"
	// +kubebuilder:validation:XValidation:rule="!self.?controlPlaneEndpoint.?host.hasValue()",fieldPath=".controlPlaneEndpoint.host",message="cannot be in a template: clusters would share it; set it with a patch of the ClusterClass"
	// +kubebuilder:validation:XValidation:rule="!self.?controlPlaneLoadBalancer.?kubeVIP.?secondaryAddress.hasValue()",fieldPath=".controlPlaneLoadBalancer.kubeVIP.secondaryAddress",message="cannot be in a template: clusters would share it; set a pool in secondaryPoolRefs, or set it with a patch of the ClusterClass"
	// +kubebuilder:validation:XValidation:rule="!self.?controlPlaneLoadBalancer.?edgeGateway.?secondaryAddress.hasValue()",fieldPath=".controlPlaneLoadBalancer.edgeGateway.secondaryAddress",message="cannot be in a template: clusters would share it; set it with a patch of the ClusterClass"
	// +kubebuilder:validation:XValidation:rule="!self.?vApp.?name.hasValue()",fieldPath=".vApp.name",message="cannot be in a template: clusters would share the vApp; set it with a patch of the ClusterClass"
	// +kubebuilder:validation:XValidation:rule="!self.?rde.?id.hasValue()",fieldPath=".rde.id",message="cannot be in a template: it is unique for each cluster"
	// +kubebuilder:validation:XValidation:rule="!has(self.capvcdCredentials) || (oldSelf.hasValue() && has(oldSelf.value().capvcdCredentials) && oldSelf.value().capvcdCredentials == self.capvcdCredentials)",optionalOldSelf=true,fieldPath=".capvcdCredentials",reason=FieldValueForbidden,message="may only be removed: store credentials in a Secret, and refer to it in a VCDIdentity"
	// +kubebuilder:validation:XValidation:rule="!has(self.recordedState)",fieldPath=".recordedState",message="cannot be in a template: it belongs to a single cluster, and the controllers set it"
	Spec VCDClusterSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=vcdclustertemplates,shortName=vcdct,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDClusterTemplate is a template of VCDClusters, for a ClusterClass.
type VCDClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VCDClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VCDClusterTemplateList is a list of VCDClusterTemplates.
type VCDClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDClusterTemplates.
	Items []VCDClusterTemplate `json:"items"`
}
