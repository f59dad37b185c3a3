// SPDX-License-Identifier: Apache-2.0

package v1beta4

import "k8s.io/apimachinery/pkg/api/resource"

// DiskSpec is an additional disk.
type DiskSpec struct {
	// name of the disk in this list. VCD does not store it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-[a-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// size of the disk, such as 100Gi.
	// +required
	Size resource.Quantity `json:"size,omitempty,omitzero"`

	// storageProfile is the name or URN of the storage profile; that of the VM if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfile string `json:"storageProfile,omitempty"`

	// iops are the I/O operations per second of the disk, within the range of its storage profile, which must have IOPS
	// limiting enabled; the default of the storage profile if empty.
	// +optional
	// +kubebuilder:validation:Minimum=1
	IOPS int32 `json:"iops,omitempty"`
}

// ExtraConfigEntry is a key of the extra configuration of a VM.
type ExtraConfigEntry struct {
	// key such as pciPassthru.use64bitMMIO. Keys that begin with guestinfo are refused: the guest is configured by them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().startsWith('guestinfo')",reason=FieldValueForbidden,message="must not begin with guestinfo: the provider configures the guest by these keys"
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'disk.enableuuid'",reason=FieldValueForbidden,message="must not be disk.enableUUID: the provider sets it"
	Key string `json:"key,omitempty"`

	// value of the key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	Value string `json:"value,omitempty"`
}
