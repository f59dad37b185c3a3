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
