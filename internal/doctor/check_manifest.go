// SPDX-License-Identifier: Apache-2.0

package doctor

// checkManifest reports contradictions in the manifest of a plan, and parts that cannot be checked.
func checkManifest(plan Plan) findings {
	var f findings
	for _, problem := range append(plan.problems, plan.misplaced()...) {
		f.problem("correct the manifest", "%s", problem)
	}
	for _, found := range plan.refused {
		f.found(Warning, found)
	}
	for _, zone := range plan.otherIdentity {
		f.warn("check its VDC with --vdc and that identity",
			"VCDDeploymentZone %s has another identity than the VCDCluster", zone)
	}
	for _, patch := range plan.external {
		f.warn("check its changes manually",
			"patch %s of the ClusterClass requires a runtime extension, so doctor does not apply it", patch)
	}
	if plan.plainPods != "" {
		f.warn(plan.plainPodsRemedy, "%s", plan.plainPods)
	}
	if plugin := plan.missingNetworkPlugin; plugin != "" {
		f.warn("apply cni-"+plugin+".yaml of a release or of make cni in this namespace, or create such an object",
			"label %s=%s of Cluster %s selects a network plug-in that no ClusterResourceSet or HelmChartProxy in its namespace installs, so Nodes will not be Ready", networkPluginLabel, plugin, plan.Name)
	}
	return f
}
