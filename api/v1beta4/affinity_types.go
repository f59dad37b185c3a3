// SPDX-License-Identifier: Apache-2.0

package v1beta4

// AntiAffinity is the level at which VCD separates the VMs of a group on different hosts.
// +kubebuilder:validation:Enum=None;Preferred;Required
type AntiAffinity string

// Anti-affinity of a group of VMs.
const (
	// AntiAffinityNone creates no rule.
	AntiAffinityNone AntiAffinity = "None"
	// AntiAffinityPreferred creates a rule that VCD may violate to power on a VM.
	AntiAffinityPreferred AntiAffinity = "Preferred"
	// AntiAffinityRequired creates a rule that VCD never violates: a VM without a separate host is not powered on.
	AntiAffinityRequired AntiAffinity = "Required"
)

// AffinityPolicy is the level at which VCD keeps the VMs of a group on one host.
// +kubebuilder:validation:Enum=Preferred;Required
type AffinityPolicy string

// Affinity of a group of VMs.
const (
	// AffinityPreferred creates a rule that VCD may violate to power on a VM.
	AffinityPreferred AffinityPolicy = "Preferred"
	// AffinityRequired creates a rule that VCD never violates: a VM for which the host has no room is not powered on.
	AffinityRequired AffinityPolicy = "Required"
)

// Affinity keeps the VM of a machine on the same host as the other VMs of a group.
type Affinity struct {
	// group is the name of the group. Its VMs are those of all machines of the cluster that set the same name, also of
	// different MachineDeployments.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-[a-z0-9]+)*$`
	Group string `json:"group,omitempty"`

	// policy is Preferred, which is the default, or Required. The rule of a group is Required if all its machines set
	// Required.
	// +optional
	// +kubebuilder:default=Preferred
	Policy AffinityPolicy `json:"policy,omitempty"`
}
