// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDMachineSpec is the desired state of a VCDMachine.
type VCDMachineSpec struct {
	// providerID is vmware-cloud-director://<URN of the VM>.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// catalog is the name of the catalog of the template.
	// +optional
	Catalog string `json:"catalog,omitempty"`

	// template is the name of the vApp template whose first VM is the machine's image.
	// +optional
	Template string `json:"template,omitempty"`

	// sizingPolicy is the name of the VM sizing policy.
	// +optional
	SizingPolicy string `json:"sizingPolicy,omitempty"`

	// placementPolicy is the name of the VM placement policy.
	// +optional
	PlacementPolicy string `json:"placementPolicy,omitempty"`

	// storageProfile is the name of the storage profile.
	// +optional
	StorageProfile string `json:"storageProfile,omitempty"`

	// diskSize is the size of the first disk.
	// +optional
	DiskSize resource.Quantity `json:"diskSize,omitempty,omitzero"`

	// bootstrapped is true once the machine is a node.
	// +optional
	Bootstrapped bool `json:"bootstrapped,omitempty"`

	// enableNvidiaGPU is without effect.
	// +optional
	EnableNvidiaGPU bool `json:"enableNvidiaGPU,omitempty"`
}

// MachineAddress is an address of a machine.
type MachineAddress struct {
	// type of the address: Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS.
	Type string `json:"type"`

	// address of the machine.
	Address string `json:"address"`
}

// VCDMachineStatus is the observed state of a VCDMachine.
type VCDMachineStatus struct {
	// providerID is a copy of the spec.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// ready is true when the machine is a node.
	// +optional
	Ready bool `json:"ready"`

	// addresses of the machine.
	// +optional
	Addresses []MachineAddress `json:"addresses,omitempty"`

	// template is a copy of the spec.
	// +optional
	Template string `json:"template,omitempty"`

	// sizingPolicy is a copy of the spec.
	// +optional
	SizingPolicy string `json:"sizingPolicy,omitempty"`

	// placementPolicy is a copy of the spec.
	// +optional
	PlacementPolicy string `json:"placementPolicy,omitempty"`

	// nvidiaGpuEnabled is a copy of the spec.
	// +optional
	NvidiaGPUEnabled bool `json:"nvidiaGpuEnabled,omitempty"`

	// diskSize is never set.
	// +optional
	DiskSize resource.Quantity `json:"diskSize,omitempty,omitzero"`

	// conditions of the machine.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdmachines,shortName=vcdm,scope=Namespaced,categories=cluster-api
// +kubebuilder:deprecatedversion:warning="infrastructure.cluster.x-k8s.io/v1beta1 VCDMachine is deprecated; use infrastructure.cluster.x-k8s.io/v1beta4 VCDMachine"

// VCDMachine is a VM of a cluster.
type VCDMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec VCDMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDMachineStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VCDMachineList is a list of VCDMachines.
type VCDMachineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDMachines.
	Items []VCDMachine `json:"items"`
}
