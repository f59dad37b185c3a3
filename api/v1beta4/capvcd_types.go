// SPDX-License-Identifier: Apache-2.0

package v1beta4

// CAPVCDCredentials are the credentials of a VCDCluster of CAPVCD, as its spec had them.
type CAPVCDCredentials struct {
	// username in VCD.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`

	// password of the user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Password string `json:"password,omitempty"`

	// refreshToken is an API token of the user; it takes precedence over user name and password.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	RefreshToken string `json:"refreshToken,omitempty"`

	// secretRef names a Secret with the keys username, password and refreshToken, which override the fields. A Secret
	// of another namespace is not read.
	// +optional
	SecretRef *CAPVCDSecretReference `json:"secretRef,omitempty"`
}

// CAPVCDSecretReference names the Secret with the credentials of a VCDCluster of CAPVCD.
type CAPVCDSecretReference struct {
	// name of the Secret.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespace of the Secret; that of the object if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
}
