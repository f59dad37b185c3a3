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
