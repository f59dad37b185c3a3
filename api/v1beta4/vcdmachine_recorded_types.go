// SPDX-License-Identifier: Apache-2.0

package v1beta4

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VCDMachineRecordedState is the state of a machine and its VM that the controllers record. Only the controllers write
// it. It is part of the spec because `clusterctl move` and backups do not restore the status.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.instanceID) || (has(self.instanceID) && self.instanceID == oldSelf.instanceID)",fieldPath=".instanceID",reason=FieldValueForbidden,message="is immutable: it identifies the VM of the machine"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.vmName) || (has(self.vmName) && self.vmName == oldSelf.vmName)",fieldPath=".vmName",reason=FieldValueForbidden,message="is immutable: it identifies the VM of the machine"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.deploymentZone) || (has(self.deploymentZone) && self.deploymentZone == oldSelf.deploymentZone)",fieldPath=".deploymentZone",reason=FieldValueForbidden,message="is immutable: the VM of the machine is in that zone"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ovdcID) || (has(self.ovdcID) && self.ovdcID == oldSelf.ovdcID)",fieldPath=".ovdcID",reason=FieldValueForbidden,message="is immutable: the VM of the machine is in that VDC"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.poweredOnAt) || (has(self.poweredOnAt) && self.poweredOnAt == oldSelf.poweredOnAt)",fieldPath=".poweredOnAt",reason=FieldValueForbidden,message="is immutable: a VM that was running is not created again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.deleteRequestedAt) || (has(self.deleteRequestedAt) && self.deleteRequestedAt == oldSelf.deleteRequestedAt)",fieldPath=".deleteRequestedAt",reason=FieldValueForbidden,message="is immutable: the deletion of the VM was requested"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.vmGoneAt) || (has(self.vmGoneAt) && self.vmGoneAt == oldSelf.vmGoneAt)",fieldPath=".vmGoneAt",reason=FieldValueForbidden,message="is immutable: the deletion of the VM was proved"
type VCDMachineRecordedState struct {
	// instanceID is the instance ID of the guest and the marker of the VM: the UID of the VCDMachine that the VM was
	// created for. It is stored before anything is created in VCD, and never changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^\S+$`
	InstanceID string `json:"instanceID,omitempty"`

	// vmName is the name with which the VM is created, and the host name of its guest. It is stored before anything is
	// created in VCD, and never changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^\S+$`
	VMName string `json:"vmName,omitempty"`

	// deploymentZone is the VCDDeploymentZone that the VM is created in. It is stored before anything is created in VCD,
	// and never changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^\S+$`
	DeploymentZone string `json:"deploymentZone,omitempty"`

	// ovdcID is the URN of the VDC of the deployment zone when the VM is created. It is stored before anything is created
	// in VCD, and never changes: the VDC can be renamed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^urn:vcloud:vdc:[0-9a-fA-F-]{36}$`
	OVDCID string `json:"ovdcID,omitempty"`

	// vAppNumber counts the vApps of the cluster up to that of the VM; the first if empty. It is stored before the VM is
	// created in a further vApp, because the ones before are full.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100
	VAppNumber int32 `json:"vAppNumber,omitempty"`

	// template is the vApp template that spec.templateSelector selected for the VM. It is stored with creationRequestedAt:
	// from then on a newer template does not change the machine.
	// +optional
	Template *RecordedTemplate `json:"template,omitempty"`

	// creationRequestedAt is the time of the last create request for the VM. It is stored before the request is sent,
	// and removed if VCD rejects the first one: a machine without it never had a VM that this provider created. It
	// stays once the VM exists.
	// +optional
	CreationRequestedAt *metav1.Time `json:"creationRequestedAt,omitempty"`

	// poweredOnAt is the time when the VM was first found running. From then on, the VM is neither created nor
	// configured. It never changes.
	// +optional
	PoweredOnAt *metav1.Time `json:"poweredOnAt,omitempty"`

	// poweredOnAgain counts how often the VM was found powered off and powered on again. It is stored before the request
	// is sent. Remove it to retry at once.
	// +optional
	PoweredOnAgain PoweredOnAgain `json:"poweredOnAgain,omitempty,omitzero"`

	// reset is the requested reset of the VM for a VCDRemediation. It is removed with the VCDRemediation.
	// +optional
	Reset RequestedReset `json:"reset,omitempty,omitzero"`

	// restart is the power cycle of the VM for an in-place update of its CPUs and memory. It is removed when the VM runs
	// with them. After a failure, remove it to retry at once.
	// +optional
	Restart RecordedRestart `json:"restart,omitempty,omitzero"`

	// bootstrapDataRemoved says that the VM was found without bootstrap data. It is removed when the VM may contain
	// bootstrap data again; remove it to check the VM again.
	// +optional
	BootstrapDataRemoved BootstrapDataRemoved `json:"bootstrapDataRemoved,omitempty,omitzero"`

	// endpointMember is the address under which the machine is a member of its cluster's control-plane endpoint on an edge
	// gateway. It is stored before the machine joins the pool, and removed when the machine has left it before its deletion.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	EndpointMember string `json:"endpointMember,omitempty"`

	// vm is the configuration with which the VM was created. Drift is a difference from it. It is written when the VM is
	// first complete. Remove it to accept the VM as it is.
	// +optional
	VM *RecordedVM `json:"vm,omitempty"`

	// vmMetadata is the metadata that the controller wrote to the VM: other metadata of the VM is not changed. An entry
	// is stored before it is written. Remove the list to write all of spec.vmMetadata again.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	VMMetadata []RecordedMetadata `json:"vmMetadata,omitempty"`

	// missingSince is the time when the VM, or the machine's own vApp, was first not found although VCD returned other
	// objects that the user can see. It is removed when it is found again.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`

	// vmNotFoundSince is the time when the VM was proved to be gone. It is removed when the VM is found again.
	// +optional
	VMNotFoundSince *metav1.Time `json:"vmNotFoundSince,omitempty"`

	// shutdownRequestedAt is the time of the last request to shut the guest down before deletion.
	// +optional
	ShutdownRequestedAt *metav1.Time `json:"shutdownRequestedAt,omitempty"`

	// deleteRequestedAt is the time of the first delete request for the VM. It is stored before the request is sent, and
	// never changes.
	// +optional
	DeleteRequestedAt *metav1.Time `json:"deleteRequestedAt,omitempty"`

	// vmGoneAt is the time when the VM was proved to be gone and the machine's own vApp was about to be deleted, and the
	// proof with it. The VM is not searched for anymore. It never changes.
	// +optional
	VMGoneAt *metav1.Time `json:"vmGoneAt,omitempty"`
}

// RecordedTemplate is a vApp template that was selected.
type RecordedTemplate struct {
	// id is the URN of the vApp template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^urn:vcloud:vapptemplate:[0-9a-fA-F-]{36}$`
	ID string `json:"id,omitempty"`

	// name of the vApp template when it was selected.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// PoweredOnAgain counts how often in a row a VM was found powered off and powered on again.
type PoweredOnAgain struct {
	// count of the attempts in a row.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// lastAt is the time of the last attempt.
	// +required
	LastAt *metav1.Time `json:"lastAt,omitempty"`
}

// RequestedReset is a reset of a VM for a VCDRemediation.
type RequestedReset struct {
	// remediation is the UID of the VCDRemediation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Remediation string `json:"remediation,omitempty"`

	// number of the reset among those of the VCDRemediation; 1 is the first.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Number int32 `json:"number,omitempty"`

	// requestedAt is the time when the VCDRemediation requested the reset.
	// +required
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// sentAt is the time of the request to VCD. It is stored before the request is sent, so that a VM is not reset twice.
	// +optional
	SentAt *metav1.Time `json:"sentAt,omitempty"`
}

// RecordedRestart is the power cycle of a VM for an in-place update.
type RecordedRestart struct {
	// requestedAt is the time when the power cycle began. It is stored before the first request is sent, so that the VM
	// is powered on again after a restart of the controllers.
	// +required
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`

	// shutdownRequestedAt is the time of the request to shut the guest down.
	// +optional
	ShutdownRequestedAt *metav1.Time `json:"shutdownRequestedAt,omitempty"`

	// failedAt is the time when VCD rejected the CPUs and memory. The VM is powered on with its previous ones.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
}

// GuestState is the state of a guest.
// +kubebuilder:validation:Enum=Running;PoweredOff
type GuestState string

// States of a guest.
const (
	// GuestRunning is a guest that runs, or may run.
	GuestRunning GuestState = "Running"
	// GuestPoweredOff is a guest whose VM is powered off.
	GuestPoweredOff GuestState = "PoweredOff"
)

// BootstrapDataRemoved describes a VM that was found without bootstrap data.
type BootstrapDataRemoved struct {
	// guest is PoweredOff if the VM was powered off when it was found without bootstrap data, after which the data
	// cannot return, otherwise Running.
	// +required
	Guest GuestState `json:"guest,omitempty"`

	// bootID is the boot ID of the Node while the guest ran, empty if it was not known. The bootstrap data may return
	// after another boot.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	BootID string `json:"bootID,omitempty"`
}

// RecordedVM is the configuration of a VM at its creation.
// +kubebuilder:validation:MinProperties=1
type RecordedVM struct {
	// vAppID is the URN of the vApp.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^urn:vcloud:vapp:[0-9a-fA-F-]{36}$`
	VAppID string `json:"vAppID,omitempty"`

	// ovdcID is the URN of the VDC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^urn:vcloud:vdc:[0-9a-fA-F-]{36}$`
	OVDCID string `json:"ovdcID,omitempty"`

	// sizingPolicyID is the URN of the VM sizing policy; empty without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SizingPolicyID string `json:"sizingPolicyID,omitempty"`

	// placementPolicyID is the URN of the VM placement policy; empty without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicyID string `json:"placementPolicyID,omitempty"`

	// storageProfileID is the URN of the storage profile.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfileID string `json:"storageProfileID,omitempty"`

	// nics are the NICs in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	NICs []RecordedNIC `json:"nics,omitempty"`

	// cpus is the number of virtual CPUs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUs int64 `json:"cpus,omitempty"`

	// memoryMiB is the size of the memory, in MiB.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// diskMiB is the size of the first disk, in MiB. It changes when the controller expands the disk.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiskMiB int64 `json:"diskMiB,omitempty"`

	// marker is Missing if the VM carries no ownership marker, because CAPVCD created it, otherwise empty.
	// +optional
	Marker RecordedMarker `json:"marker,omitempty"`

	// comparison is Different if the VM differed from this record in the last comparison, otherwise empty.
	// +optional
	Comparison RecordedComparison `json:"comparison,omitempty"`
}

// RecordedMarker is whether a VM was created with an ownership marker.
// +kubebuilder:validation:Enum=Missing
type RecordedMarker string

// MarkerMissing is a VM without an ownership marker.
const MarkerMissing RecordedMarker = "Missing"

// RecordedComparison is the result of comparing a VM with its record.
// +kubebuilder:validation:Enum=Different
type RecordedComparison string

// ComparisonDifferent is a VM that differs from its record.
const ComparisonDifferent RecordedComparison = "Different"

// RecordedNIC is a NIC as it was created.
// +kubebuilder:validation:MinProperties=1
type RecordedNIC struct {
	// macAddress of the NIC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=17
	MACAddress string `json:"macAddress,omitempty"`

	// network is the name of the network; empty if the NIC is connected to none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Network string `json:"network,omitempty"`

	// address is the configured address of the guest; empty if it uses DHCP.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`
}
