// SPDX-License-Identifier: Apache-2.0

package v1beta4

// AntiAffinity is how much VCD keeps the VMs of a group on different hosts.
// +kubebuilder:validation:Enum=None;Preferred;Required
type AntiAffinity string

// Anti-affinity of a group of VMs.
const (
	// AntiAffinityNone has no rule.
	AntiAffinityNone AntiAffinity = "None"
	// AntiAffinityPreferred has a rule that VCD breaks rather than leave a VM powered off.
	AntiAffinityPreferred AntiAffinity = "Preferred"
	// AntiAffinityRequired has a rule that VCD does not break: a VM without a host of its own is not powered on.
	AntiAffinityRequired AntiAffinity = "Required"
)

// AntiAffinitySpec says which VMs are kept on different hosts. VCD has a rule for each group and VDC with two VMs of
// the group or more.
type AntiAffinitySpec struct {
	// controlPlane is for the VMs of the control plane: None, which is the default, Preferred or Required. Required
	// takes a host more than there are control planes, because a rollout adds one before it removes one.
	// +optional
	ControlPlane AntiAffinity `json:"controlPlane,omitempty"`

	// machineDeployments is for the VMs of each MachineDeployment on its own: None, which is the default, Preferred or
	// Required.
	// +optional
	MachineDeployments AntiAffinity `json:"machineDeployments,omitempty"`

	// overrides are for single MachineDeployments.
	// +optional
	// +listType=map
	// +listMapKey=machineDeployment
	// +kubebuilder:validation:MaxItems=100
	Overrides []AntiAffinityOverride `json:"overrides,omitempty"`
}

// AntiAffinityOverride is for the VMs of one MachineDeployment.
type AntiAffinityOverride struct {
	// machineDeployment is the name of the MachineDeployment, or the one that it has in spec.topology of the Cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment,omitempty"`

	// policy is None, Preferred or Required.
	// +required
	Policy AntiAffinity `json:"policy,omitempty"`
}
