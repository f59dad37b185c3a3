// SPDX-License-Identifier: Apache-2.0

// Package affinity decides which rules of VCD keep the VMs of a cluster on different hosts or on one, and writes them.
package affinity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Group are machines whose VMs are kept on different hosts, or on one.
type Group struct {
	Name string // within the cluster; empty: the machine is in none
	// Together is true if the VMs are kept on one host.
	Together bool
	// Ruled is true if the machine is to be in a rule of the group.
	Ruled bool
	// Required is true if the machine asks for a rule that VCD never violates.
	Required bool
}

// GroupOf returns the group of a machine: the one that it names to be on the same host, or else the control plane or its
// MachineDeployment.
func GroupOf(m *infrav1.VCDMachine) Group {
	if affinity := m.Spec.Affinity; affinity != nil {
		return Group{
			Name:     "affinity-" + affinity.Group,
			Together: true,
			Ruled:    true,
			Required: affinity.Policy == infrav1.AffinityRequired,
		}
	}
	policy := m.Spec.AntiAffinity
	group := Group{
		Ruled:    policy == infrav1.AntiAffinityPreferred || policy == infrav1.AntiAffinityRequired,
		Required: policy == infrav1.AntiAffinityRequired,
	}
	name := m.Labels[clusterv1.MachineDeploymentNameLabel]
	if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		group.Name = "control-plane"
		return group
	}
	if name == "" {
		return Group{}
	}
	group.Name = "md-" + name
	return group
}

// Asked reports whether any of some machines asks for a rule.
func Asked(machines []infrav1.VCDMachine) bool {
	for i := range machines {
		if GroupOf(&machines[i]).Ruled {
			return true
		}
	}
	return false
}

const (
	// maxGroup is how much of the name of a group stands in the name of its rule: VCD takes 128 characters in all.
	maxGroup = 70
	// idLength is that of a UUID, with which an infraID ends.
	idLength   = 36
	hashLength = 8
)

// Prefix is what the names of all rules of a cluster begin with. A rule has nothing else that could be a marker.
func Prefix(infraID string) string {
	return "capi-" + strings.ToLower(infraID[max(0, len(infraID)-idLength):]) + "-"
}

// ruleName returns the name of the rule of a group.
func ruleName(infraID, group string) string {
	if len(group) > maxGroup {
		sum := sha256.Sum256([]byte(group))
		group = group[:maxGroup-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
	}
	return Prefix(infraID) + group
}
