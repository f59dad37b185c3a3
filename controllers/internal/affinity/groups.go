// SPDX-License-Identifier: Apache-2.0

// Package affinity decides which rules of VCD keep the VMs of a cluster on different hosts, and writes them.
package affinity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Group are machines whose VMs are kept on different hosts.
type Group struct {
	Name   string               // within the cluster; empty: the machine is in none
	Policy infrav1.AntiAffinity // what the machine asks for
}

// Ruled reports whether the machine is to be in a rule of the group.
func (g Group) Ruled() bool {
	return g.Name != "" && (g.Policy == infrav1.AntiAffinityPreferred || g.Policy == infrav1.AntiAffinityRequired)
}

// GroupOf returns the group of a machine: the control plane, or its MachineDeployment.
func GroupOf(m *infrav1.VCDMachine) Group {
	if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return Group{Name: "control-plane", Policy: m.Spec.AntiAffinity}
	}
	name := m.Labels[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return Group{}
	}
	return Group{Name: "md-" + name, Policy: m.Spec.AntiAffinity}
}

// Asked reports whether any of some machines asks for a rule.
func Asked(machines []infrav1.VCDMachine) bool {
	for i := range machines {
		if GroupOf(&machines[i]).Ruled() {
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
