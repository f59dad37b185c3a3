// SPDX-License-Identifier: Apache-2.0

// Package affinity plans and writes the rules in VCD that keep VMs of a cluster on different hosts, or on one host.
package affinity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Group is a set of machines whose VMs can be kept on different hosts, or on one host.
type Group struct {
	Name string // unique within the cluster; empty: the machine is in no group
	// Together is true if the VMs are kept on one host.
	Together bool
	// NeedsRule is true if the VM of the machine belongs in the rule of the group.
	NeedsRule bool
	// Required is true if the machine requests a rule that VCD never violates.
	Required bool
}

// GroupOf returns the group of a machine. It is the affinity group in the spec of the machine, otherwise the control
// plane or the MachineDeployment of the machine.
func GroupOf(m *infrav1.VCDMachine) Group {
	if affinity := m.Spec.Affinity; affinity != nil {
		return Group{
			Name:      "affinity-" + affinity.Group,
			Together:  true,
			NeedsRule: true,
			Required:  affinity.Policy == infrav1.AffinityRequired,
		}
	}
	policy := m.Spec.AntiAffinity
	group := Group{
		NeedsRule: policy == infrav1.AntiAffinityPreferred || policy == infrav1.AntiAffinityRequired,
		Required:  policy == infrav1.AntiAffinityRequired,
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

// Requested reports whether any of the machines requests a rule.
func Requested(machines []infrav1.VCDMachine) bool {
	for i := range machines {
		if GroupOf(&machines[i]).NeedsRule {
			return true
		}
	}
	return false
}

const (
	// maxGroup is the maximum length of the name of a group within the name of its rule. VCD limits names of rules to
	// 128 characters.
	maxGroup = 70
	// idLength is the length of the UUID at the end of an infraID.
	idLength   = 36
	hashLength = 8
)

// Prefix returns the prefix of the names of all rules of a cluster. It serves as the ownership marker, because no other
// field of a rule can contain one.
func Prefix(infraID string) string {
	return "capi-" + strings.ToLower(infraID[max(0, len(infraID)-idLength):]) + "-"
}

// ruleName returns the name of the rule of a group. It shortens a long name of a group and appends a hash of it.
func ruleName(infraID, group string) string {
	if len(group) > maxGroup {
		sum := sha256.Sum256([]byte(group))
		group = group[:maxGroup-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
	}
	return Prefix(infraID) + group
}
