// SPDX-License-Identifier: Apache-2.0

package v1beta4

// KubernetesVersionPlaceholder is replaced in the name pattern of a TemplateSelector.
const KubernetesVersionPlaceholder = "{kubernetesVersion}"

// TemplateSelector selects the newest vApp template of a catalog that matches all its fields. It must select by the
// Kubernetes version of the Machine: a placeholder in namePattern, or kubernetesVersionKey.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.kubernetesVersionKey) || (has(self.namePattern) && self.namePattern.contains('{kubernetesVersion}'))",message="must select by Kubernetes version: use {kubernetesVersion} in namePattern, or set kubernetesVersionKey"
type TemplateSelector struct {
	// namePattern is a pattern of the name, such as ubuntu-2404-kube-v{kubernetesVersion}*. An asterisk stands for any
	// characters, a question mark for one. {kubernetesVersion} is the version of the Machine without the leading v and
	// without build metadata, such as 1.36.3. All names match if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()=!<>"'\\]+$`
	NamePattern string `json:"namePattern,omitempty"`

	// matchMetadata are entries of metadata of type text that the vApp template must have.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	MatchMetadata []TemplateMetadata `json:"matchMetadata,omitempty"`

	// kubernetesVersionKey is the key of an entry of metadata of type text whose value is the version of the Machine, such
	// as v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\/?#%:]+$`
	KubernetesVersionKey string `json:"kubernetesVersionKey,omitempty"`
}

// TemplateMetadata is an entry of metadata of a vApp template.
type TemplateMetadata struct {
	// key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\/?#%:]+$`
	Key string `json:"key,omitempty"`

	// value of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\]+$`
	Value string `json:"value,omitempty"`
}
