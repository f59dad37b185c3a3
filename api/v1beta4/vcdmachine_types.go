// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// VCDMachineSpec is the desired state of a VCDMachine.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.templateSelector)",fieldPath=".template",message="exactly one of template and templateSelector must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.affinity) || !has(self.antiAffinity) || self.antiAffinity == 'None'",fieldPath=".affinity",reason=FieldValueForbidden,message="cannot be set together with antiAffinity: leave out one of them"
type VCDMachineSpec struct {
	// providerID is vmware-cloud-director://<URN of the VM>. Written by the controller as soon as the VM exists;
	// immutable once set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^vmware-cloud-director://urn:vcloud:vm:[0-9a-fA-F-]{36}$`
	ProviderID string `json:"providerID,omitempty"`

	// catalog is the name or URN of the catalog of the template; it may be shared from another organization. Immutable
	// once the VM exists. A deployment zone may set it instead.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Catalog string `json:"catalog,omitempty"`

	// template is the name or URN of the vApp template whose first VM is the machine's image. Set either template or
	// templateSelector. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`

	// templateSelector selects the vApp template instead of template: the newest of the catalog that matches. The
	// template is selected when the VM is created; a newer one does not change the VM. Immutable once the VM exists.
	// +optional
	TemplateSelector *TemplateSelector `json:"templateSelector,omitempty"`

	// sizingPolicy is the name or URN of the VM sizing policy: CPUs and memory; the VDC's default policy if empty, or
	// the template's own size where that fixes none. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SizingPolicy string `json:"sizingPolicy,omitempty"`

	// cpus is the number of virtual CPUs, instead of a sizing policy: cannot be set together with sizingPolicy. That of
	// the policy or the template if empty. Immutable once the VM exists, except for in-place updates by Cluster API.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	CPUs int32 `json:"cpus,omitempty"`

	// memory is the size of the memory, such as 8Gi, instead of a sizing policy: cannot be set together with
	// sizingPolicy. A multiple of 4Mi, from 512Mi to 6Ti. That of the policy or the template if empty. Immutable once the
	// VM exists, except for in-place updates by Cluster API.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// hardwareVersion is the version of the virtual hardware, such as vmx-19, not below that of the template; that of
	// the template if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:Pattern=`^vmx-[0-9]{1,3}$`
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=8
	HardwareVersion string `json:"hardwareVersion,omitempty"`

	// placementPolicy is the name or URN of the VM placement policy or vGPU policy; VCD's choice if empty. Immutable
	// once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicy string `json:"placementPolicy,omitempty"`

	// storageProfile is the name or URN of the storage profile; the VDC's default if empty. Immutable once the VM
	// exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfile string `json:"storageProfile,omitempty"`

	// diskSize is the size of the first disk, such as 40Gi; the size in the template if empty. It must be at least 1Gi,
	// and at least the size in the template. Mutable in place: it can be increased.
	// +optional
	DiskSize *resource.Quantity `json:"diskSize,omitempty"`

	// diskIOPS are the I/O operations per second of the first disk, within the range of its storage profile, which must
	// have IOPS limiting enabled; the default of the storage profile if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiskIOPS int32 `json:"diskIOPS,omitempty"`

	// additionalDisks are created empty, in this order behind the disks of the template, and deleted with the VM.
	// Immutable once the VM exists.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	AdditionalDisks []DiskSpec `json:"additionalDisks,omitempty"`

	// extraConfig are further keys of the VM's extra configuration, for example of PCI devices. They are written before the
	// VM is powered on. The identity must allow them in its allowedExtraConfig. Immutable once the VM exists.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ExtraConfig []ExtraConfigEntry `json:"extraConfig,omitempty"`

	// networks are the NICs in order; the first is the primary one. A single NIC with an address of the static pool in
	// the cluster's ovdcNetwork if empty. Immutable once the VM exists.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.filter(n, !has(n.name)).size() == (has(self[0].name) ? 0 : 1)",message="is required for all NICs except the first one, whose default is the ovdcNetwork of the cluster"
	Networks []NetworkSpec `json:"networks,omitempty"`

	// vmNamingTemplate is a Go template for the name of the VM, which is also its host name, such as {{ .cluster.name
	// }}-{{ .random }}. It can use .cluster, .machine, .vcdMachine, .machineDeployment, .machineSet,
	// .kubeadmControlPlane and .random, which never changes for a machine. At most 63 characters. The machine's name
	// if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	VMNamingTemplate string `json:"vmNamingTemplate,omitempty"`

	// powerOffPolicy is the reaction to a powered-off VM: Report, the default, sets Ready to False; PowerOn powers it
	// on again. Mutable in place.
	// +optional
	// +kubebuilder:default=Report
	PowerOffPolicy PowerOffPolicy `json:"powerOffPolicy,omitempty"`

	// powerOffMode is how the VM is powered off on deletion: TrySoft, the default, shuts down the guest and powers off
	// the VM if that takes too long; Soft waits for the guest without a time limit; Hard powers off the VM immediately.
	// Mutable in place.
	// +optional
	// +kubebuilder:default=TrySoft
	PowerOffMode PowerOffMode `json:"powerOffMode,omitempty"`

	// shutdownTimeoutSeconds is the time for the guest to shut down before its VM is powered off on deletion, in
	// seconds; 60 if empty. With 0, the VM is powered off immediately. With powerOffMode Soft, the deletion reports a
	// guest that takes longer, and waits; with Hard, it has no effect. Mutable in place.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	ShutdownTimeoutSeconds *int32 `json:"shutdownTimeoutSeconds,omitempty"`

	// vmMetadata is metadata of the VM in VCD, for example for billing. Mutable in place.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	VMMetadata []MetadataEntry `json:"vmMetadata,omitempty"`

	// antiAffinity keeps the VM on a different host from the other VMs of its group, which are those of the control plane or of
	// the same MachineDeployment, with a rule in VCD: None (default), Preferred or Required. The rule of a group is
	// Required if all its machines set Required. Required needs one more host than the group has machines, because a
	// rollout adds a machine before it removes one. Mutable in place.
	// +optional
	// +kubebuilder:default=None
	AntiAffinity AntiAffinity `json:"antiAffinity,omitempty"`

	// affinity keeps the VM on the same host as the other VMs of a group, with a rule in VCD: cannot be set together with
	// antiAffinity. Mutable in place.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// recordedState is internal state of the controllers. Written by the controller. A user may remove a field only if
	// its description says so.
	// +optional
	RecordedState VCDMachineRecordedState `json:"recordedState,omitempty,omitzero"`
}

// PowerOffPolicy is the reaction to a powered-off VM.
// +kubebuilder:validation:Enum=Report;PowerOn
type PowerOffPolicy string

// Power-off policies.
const (
	// PowerOffReport reports it.
	PowerOffReport PowerOffPolicy = "Report"
	// PowerOffPowerOn powers the VM on.
	PowerOffPowerOn PowerOffPolicy = "PowerOn"
)

// PowerOffMode is how the VM of a deleted machine is powered off, and a VM that is powered off for an in-place update.
// +kubebuilder:validation:Enum=TrySoft;Soft;Hard
type PowerOffMode string

// Power-off modes.
const (
	// PowerOffTrySoft shuts down the guest, and powers off the VM if that fails or takes too long.
	PowerOffTrySoft PowerOffMode = "TrySoft"
	// PowerOffSoft shuts down the guest, and never powers off the VM.
	PowerOffSoft PowerOffMode = "Soft"
	// PowerOffHard powers off the VM.
	PowerOffHard PowerOffMode = "Hard"
)

// VCDMachineStatus is the observed state of a VCDMachine.
// +kubebuilder:validation:MinProperties=1
type VCDMachineStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the machine, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization follows the Cluster API contract.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses of the machine: its host name and the address of each NIC.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the zone that the VM is in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// vm is the VM in VCD.
	// +optional
	VM *ResourceReference `json:"vm,omitempty"`

	// vApp is the vApp of the VM.
	// +optional
	VApp *ResourceReference `json:"vApp,omitempty"`

	// nics are the VM's network connections as VCD reports them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	NICs []NICStatus `json:"nics,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdmachines,shortName=vcdm,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,description="Machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the object is ready"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not"
// +kubebuilder:printcolumn:name="Provisioned",type="boolean",JSONPath=`.status.initialization.provisioned`,description="Whether the infrastructure was complete once"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="FailureDomain",type="string",JSONPath=`.status.failureDomain`,description="Zone that the VM is in"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=`.status.nics[0].address`,description="Address of the first NIC"
// +kubebuilder:printcolumn:name="Template",type="string",JSONPath=`.spec.template`,description="vApp template",priority=10
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=`.spec.providerID`,description="Provider id",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDMachine is the VM of a Machine in VMware Cloud Director.
type VCDMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",fieldPath=".providerID",message="is immutable once set: the Node has the same provider ID"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.catalog) ? has(oldSelf.catalog) && self.catalog == oldSelf.catalog : !has(oldSelf.catalog))",fieldPath=".catalog",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.template) ? has(oldSelf.template) && self.template == oldSelf.template : !has(oldSelf.template))",fieldPath=".template",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.templateSelector) ? has(oldSelf.templateSelector) && self.templateSelector == oldSelf.templateSelector : !has(oldSelf.templateSelector))",fieldPath=".templateSelector",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.sizingPolicy) ? has(oldSelf.sizingPolicy) && self.sizingPolicy == oldSelf.sizingPolicy : !has(oldSelf.sizingPolicy))",fieldPath=".sizingPolicy",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.hardwareVersion) ? has(oldSelf.hardwareVersion) && self.hardwareVersion == oldSelf.hardwareVersion : !has(oldSelf.hardwareVersion))",fieldPath=".hardwareVersion",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.placementPolicy) ? has(oldSelf.placementPolicy) && self.placementPolicy == oldSelf.placementPolicy : !has(oldSelf.placementPolicy))",fieldPath=".placementPolicy",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.storageProfile) ? has(oldSelf.storageProfile) && self.storageProfile == oldSelf.storageProfile : !has(oldSelf.storageProfile))",fieldPath=".storageProfile",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.diskIOPS) ? has(oldSelf.diskIOPS) && self.diskIOPS == oldSelf.diskIOPS : !has(oldSelf.diskIOPS))",fieldPath=".diskIOPS",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.additionalDisks) ? has(oldSelf.additionalDisks) && self.additionalDisks == oldSelf.additionalDisks : !has(oldSelf.additionalDisks))",fieldPath=".additionalDisks",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.extraConfig) ? has(oldSelf.extraConfig) && self.extraConfig == oldSelf.extraConfig : !has(oldSelf.extraConfig))",fieldPath=".extraConfig",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.networks) ? has(oldSelf.networks) && self.networks == oldSelf.networks : !has(oldSelf.networks))",fieldPath=".networks",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.vmNamingTemplate) ? has(oldSelf.vmNamingTemplate) && self.vmNamingTemplate == oldSelf.vmNamingTemplate : !has(oldSelf.vmNamingTemplate))",fieldPath=".vmNamingTemplate",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="has(self.recordedState) || !has(oldSelf.recordedState) || !(has(oldSelf.recordedState.instanceID) || has(oldSelf.recordedState.vmName) || has(oldSelf.recordedState.deploymentZone) || has(oldSelf.recordedState.ovdcID) || has(oldSelf.recordedState.poweredOnAt) || has(oldSelf.recordedState.deleteRequestedAt) || has(oldSelf.recordedState.vmGoneAt))",fieldPath=".recordedState",reason=FieldValueForbidden,message="cannot be removed: it identifies the VM of the machine"
	// +kubebuilder:validation:XValidation:rule="!self.?recordedState.?poweredOnAt.hasValue() || has(self.providerID)",fieldPath=".recordedState.poweredOnAt",reason=FieldValueForbidden,message="requires a VM, but the VCDMachine has none: the controller sets it, remove the field"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || !oldSelf.?recordedState.?creationRequestedAt.hasValue() || self.?recordedState.?creationRequestedAt.hasValue()",fieldPath=".recordedState.creationRequestedAt",reason=FieldValueForbidden,message="cannot be removed once the VM exists: it records that this provider created the VM"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || !has(oldSelf.recordedState) || !has(oldSelf.recordedState.template) || (has(self.recordedState) && has(self.recordedState.template) && self.recordedState.template.id == oldSelf.recordedState.template.id)",fieldPath=".recordedState.template",reason=FieldValueForbidden,message="is immutable once the VM exists: the VM was created from it"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || self.?recordedState.?vAppNumber.orValue(1) == oldSelf.?recordedState.?vAppNumber.orValue(1)",fieldPath=".recordedState.vAppNumber",reason=FieldValueForbidden,message="is immutable once the VM exists: the VM is in that vApp"
	Spec VCDMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (m *VCDMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (m *VCDMachine) ObserveGeneration() { m.Status.ObservedGeneration = m.Generation }

// SetConditions replaces the conditions.
func (m *VCDMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

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
