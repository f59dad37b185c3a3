// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// matching returns the definitions of a patch that select a part.
func matching(definitions []clusterv1.PatchDefinition, p *part) []clusterv1.PatchDefinition {
	var found []clusterv1.PatchDefinition
	for _, definition := range definitions {
		if selects(definition.Selector, p) {
			found = append(found, definition)
		}
	}
	return found
}

func selects(selector clusterv1.PatchSelector, p *part) bool {
	if p.object.GetAPIVersion() != selector.APIVersion || p.object.GetKind() != selector.Kind {
		return false
	}
	match := selector.MatchResources
	switch p.role {
	case roleInfrastructureCluster:
		return ptr.Deref(match.InfrastructureCluster, false)
	case roleControlPlane:
		return ptr.Deref(match.ControlPlane, false)
	case roleMachineDeployment:
		return match.MachineDeploymentClass != nil && slices.ContainsFunc(match.MachineDeploymentClass.Names,
			func(pattern string) bool { return matchesName(pattern, p.class) })
	}
	return false
}

// matchesName reports whether a name matches a pattern, which may start or end with *.
func matchesName(pattern, name string) bool {
	suffix, front := strings.CutPrefix(pattern, "*")
	prefix, end := strings.CutSuffix(pattern, "*")
	return pattern == name || front && strings.HasSuffix(name, suffix) || end && strings.HasPrefix(name, prefix)
}
