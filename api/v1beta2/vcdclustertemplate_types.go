// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDClusterTemplateResource is the spec of clusters.
type VCDClusterTemplateResource struct {
	// spec of the clusters.
	Spec VCDClusterSpec `json:"spec"`
}

// VCDClusterTemplateSpec is the desired state of a VCDClusterTemplate.
type VCDClusterTemplateSpec struct {
	// template of the clusters.
	Template VCDClusterTemplateResource `json:"template"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vcdclustertemplates,shortName=vcdct,scope=Namespaced,categories=cluster-api
// +kubebuilder:deprecatedversion:warning="infrastructure.cluster.x-k8s.io/v1beta2 VCDClusterTemplate is deprecated; use infrastructure.cluster.x-k8s.io/v1beta4 VCDClusterTemplate"

// VCDClusterTemplate is a template of VCDClusters, for a ClusterClass.
type VCDClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
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
