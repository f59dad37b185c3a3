// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDFailureDomainSpec is the desired state of a VCDFailureDomain.
type VCDFailureDomainSpec struct {
	// region is the value of topology.kubernetes.io/region. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// zone is the value of topology.kubernetes.io/zone. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// ovdc is the name or URN of the organization VDC. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OVDC string `json:"ovdc,omitempty"`

	// placementPolicy is the name or URN of the VM placement policy of the zone, if the zone is a part of the VDC.
	// Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicy string `json:"placementPolicy,omitempty"`
}

// VCDFailureDomainStatus is the observed state of a VCDFailureDomain.
// +kubebuilder:validation:MinProperties=1
type VCDFailureDomainStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the failure domain, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ovdc is the organization VDC in VCD.
	// +optional
	OVDC *ResourceReference `json:"ovdc,omitempty"`

	// placementPolicy is the VM placement policy in VCD.
	// +optional
	PlacementPolicy *ResourceReference `json:"placementPolicy,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdfailuredomains,shortName=vcdfd,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Region",type="string",JSONPath=`.spec.region`,description="Region"
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=`.spec.zone`,description="Zone"
// +kubebuilder:printcolumn:name="OVDC",type="string",JSONPath=`.spec.ovdc`,description="Organization VDC"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether it was found in VCD"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it was not"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDFailureDomain is a region and a zone in VCD.
type VCDFailureDomain struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.region == oldSelf.region",fieldPath=".region",message="is immutable: create another object"
	// +kubebuilder:validation:XValidation:rule="self.zone == oldSelf.zone",fieldPath=".zone",message="is immutable: create another object"
	// +kubebuilder:validation:XValidation:rule="self.ovdc == oldSelf.ovdc",fieldPath=".ovdc",message="is immutable: create another object"
	// +kubebuilder:validation:XValidation:rule="has(self.placementPolicy) ? has(oldSelf.placementPolicy) && self.placementPolicy == oldSelf.placementPolicy : !has(oldSelf.placementPolicy)",fieldPath=".placementPolicy",message="is immutable: create another object"
	Spec VCDFailureDomainSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDFailureDomainStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (d *VCDFailureDomain) GetConditions() []metav1.Condition { return d.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (d *VCDFailureDomain) ObserveGeneration() { d.Status.ObservedGeneration = d.Generation }

// SetConditions replaces the conditions.
func (d *VCDFailureDomain) SetConditions(conditions []metav1.Condition) {
	d.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VCDFailureDomainList is a list of VCDFailureDomains.
type VCDFailureDomainList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDFailureDomains.
	Items []VCDFailureDomain `json:"items"`
}

// VCDDeploymentZoneSpec is the desired state of a VCDDeploymentZone.
type VCDDeploymentZoneSpec struct {
	// failureDomain is the name of the VCDFailureDomain. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FailureDomain string `json:"failureDomain,omitempty"`

	// site is the URL of VMware Cloud Director. A cluster uses the zone only if its site is the same. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != ''",message="must be an https URL, such as https://vcd.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || (url(self).getEscapedPath() == '' && url(self).getQuery().size() == 0 && !self.contains('@') && !self.contains('#') && !self.endsWith('?'))",message="must contain only scheme, host and port, without a trailing slash"
	Site string `json:"site,omitempty"`

	// org is the name of the organization. A cluster uses the zone only if its org is the same. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Org string `json:"org,omitempty"`

	// identityRef is the identity for requests to VCD in the zone. Mutable in place.
	// +required
	IdentityRef IdentityReference `json:"identityRef,omitempty,omitzero"`

	// controlPlane allows control planes in the zone; true if empty. Mutable in place.
	// +optional
	// +kubebuilder:default=true
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// placementConstraint has defaults for machines in the zone. Mutable in place; takes effect on new machines.
	// +optional
	PlacementConstraint PlacementConstraint `json:"placementConstraint,omitempty,omitzero"`
}

// PlacementConstraint has defaults for machines in a zone.
// +kubebuilder:validation:MinProperties=1
type PlacementConstraint struct {
	// networks are the names or URNs of the organization VDC networks in the order of the NICs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Networks []string `json:"networks,omitempty"`

	// storageProfile is the name or URN of the storage profile.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfile string `json:"storageProfile,omitempty"`

	// sizingPolicy is the name or URN of the VM sizing policy.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SizingPolicy string `json:"sizingPolicy,omitempty"`

	// catalog is the name or URN of the catalog of the templates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Catalog string `json:"catalog,omitempty"`
}

// VCDDeploymentZoneStatus is the observed state of a VCDDeploymentZone.
// +kubebuilder:validation:MinProperties=1
type VCDDeploymentZoneStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the zone, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// usable is true if all objects of the zone existed at the last check. Clusters list only usable zones in their
	// failure domains.
	// +optional
	Usable *bool `json:"usable,omitempty"`

	// ovdc is the organization VDC in VCD.
	// +optional
	OVDC *ResourceReference `json:"ovdc,omitempty"`

	// placementPolicy is the VM placement policy in VCD.
	// +optional
	PlacementPolicy *ResourceReference `json:"placementPolicy,omitempty"`

	// networks are those of placementConstraint in VCD, in the same order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Networks []ResourceReference `json:"networks,omitempty"`

	// storageProfile is that of placementConstraint in VCD.
	// +optional
	StorageProfile *ResourceReference `json:"storageProfile,omitempty"`

	// sizingPolicy is that of placementConstraint in VCD.
	// +optional
	SizingPolicy *ResourceReference `json:"sizingPolicy,omitempty"`

	// catalog is that of placementConstraint in VCD.
	// +optional
	Catalog *ResourceReference `json:"catalog,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcddeploymentzones,shortName=vcddz,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="FailureDomain",type="string",JSONPath=`.spec.failureDomain`,description="Failure domain"
// +kubebuilder:printcolumn:name="ControlPlane",type="boolean",JSONPath=`.spec.controlPlane`,description="Whether control planes may go there"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether it can be used"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it cannot"
// +kubebuilder:printcolumn:name="OVDC",type="string",JSONPath=`.status.ovdc.name`,description="Organization VDC"
// +kubebuilder:printcolumn:name="Org",type="string",JSONPath=`.spec.org`,description="Organization",priority=10
// +kubebuilder:printcolumn:name="Site",type="string",JSONPath=`.spec.site`,description="VMware Cloud Director",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDDeploymentZone is a failure domain that machines can be placed in.
type VCDDeploymentZone struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.failureDomain == oldSelf.failureDomain",fieldPath=".failureDomain",message="is immutable: create another object"
	// +kubebuilder:validation:XValidation:rule="self.site == oldSelf.site",fieldPath=".site",message="is immutable: create another object"
	// +kubebuilder:validation:XValidation:rule="self.org == oldSelf.org",fieldPath=".org",message="is immutable: create another object"
	Spec VCDDeploymentZoneSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDDeploymentZoneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (z *VCDDeploymentZone) GetConditions() []metav1.Condition { return z.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (z *VCDDeploymentZone) ObserveGeneration() { z.Status.ObservedGeneration = z.Generation }

// SetConditions replaces the conditions.
func (z *VCDDeploymentZone) SetConditions(conditions []metav1.Condition) {
	z.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VCDDeploymentZoneList is a list of VCDDeploymentZones.
type VCDDeploymentZoneList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDDeploymentZones.
	Items []VCDDeploymentZone `json:"items"`
}
