// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// Names of the machine templates at the end of the upgrade.
const (
	upgradedControlPlane = "upgraded-control-plane"
	upgradedWorkers      = "upgraded-workers"
)

// flavors returns the additional templates that specs need, as functions that change the default template.
func flavors() map[string]func([]byte) ([]byte, error) {
	return map[string]func([]byte) ([]byte, error){"upgrades": upgrades, "taints": tainted, "md-remediation": remedied}
}

// The shipped ClusterClass, its Cluster, and the class for a chained upgrade, which is the same with a list of
// versions.
const (
	class           = "clusterclass-quick-start.yaml"
	ofClass         = "cluster-template-topology.yaml"
	chainedClass    = "clusterclass-chained.yaml"
	ofChainedClass  = "cluster-template-chained.yaml"
	taintedTopology = "cluster-template-topology-taints.yaml"
)

// addTopologies adds the files for specs of ClusterClasses to the files of a release.
func addTopologies(files map[string][]byte) error {
	var err error
	if files[taintedTopology], err = taintedOfClass(files[ofClass]); err != nil {
		return err
	}
	chained := func(manifest []byte) []byte {
		return bytes.ReplaceAll(manifest, []byte("quick-start"), []byte("chained"))
	}
	files[ofChainedClass] = chained(files[ofClass])
	files[chainedClass], err = replaceOnce(chained(files[class]), []byte("\nspec:\n  infrastructure:\n"), fmt.Appendf(nil,
		"\nspec:\n  kubernetesVersions: [%s, %s, %s]\n  infrastructure:\n", chainFrom, upgradeFrom,
		programs.KubernetesVersion))
	return err
}

// taintedOfClass sets the initial taints on control planes and workers that the spec of rollouts expects, and no
// others: no cloud controller manager would remove its taint.
func taintedOfClass(template []byte) ([]byte, error) {
	const taints = `
%[1]staints:
%[1]s  - {key: pre-existing-always-taint, value: always-value, effect: PreferNoSchedule, propagation: Always}
%[1]s  - {key: pre-existing-on-initialization-taint, value: on-initialization-value, effect: PreferNoSchedule, propagation: OnInitialization}`
	var err error
	for after, indent := range map[string]string{
		"replicas: ${CONTROL_PLANE_MACHINE_COUNT}": "      ",
		"replicas: ${WORKER_MACHINE_COUNT}":        "          ",
	} {
		template, err = replaceOnce(template, []byte(after), []byte(after+fmt.Sprintf(taints, indent)))
		if err != nil {
			return nil, err
		}
	}
	return replaceOnce(template, []byte("mode: Managed\n          identityRef:\n            name: \"${CLUSTER_NAME}-ccm\"\n"),
		[]byte("mode: None\n"))
}

var separator = []byte("\n---\n")

// upgrades starts with the VM template of the old Kubernetes version, and adds machine templates with the new one.
func upgrades(template []byte) ([]byte, error) {
	const variable = `"${VCD_TEMPLATE_NAME}"`
	var added [][]byte
	for from, to := range map[string]string{
		`"${CLUSTER_NAME}-control-plane"`: upgradedControlPlane,
		`"${CLUSTER_NAME}-md-0"`:          upgradedWorkers,
	} {
		for _, document := range bytes.Split(template, separator) {
			if bytes.Contains(document, []byte("kind: VCDMachineTemplate\nmetadata:\n  name: "+from)) {
				added = append(added, bytes.Replace(document, []byte(from), []byte(to), 1))
			}
		}
	}
	if len(added) != 2 {
		return nil, errors.New("the usual template has not got the two machine templates that were expected")
	}
	old := bytes.ReplaceAll(template, []byte(variable), []byte(simsite.TemplateName(upgradeFrom)))
	result := append([][]byte{old}, added...)
	return bytes.ReplaceAll(bytes.Join(result, separator), []byte(variable),
		[]byte(simsite.TemplateName(programs.KubernetesVersion))), nil
}

// tainted sets the initial taints on control planes and workers that the spec of rollouts expects.
func tainted(template []byte) ([]byte, error) {
	taints := []byte(`
      taints:
        - {key: pre-existing-on-initialization-taint, value: on-initialization-value, effect: PreferNoSchedule, propagation: OnInitialization}
        - {key: pre-existing-always-taint, value: always-value, effect: PreferNoSchedule, propagation: Always}`)
	for _, machine := range [][]byte{
		[]byte("\n  machineTemplate:\n    spec:"),
		[]byte("\n    spec:\n      clusterName: \"${CLUSTER_NAME}\""),
	} {
		var err error
		if template, err = replaceOnce(template, machine, slices.Concat(machine, taints)); err != nil {
			return nil, err
		}
	}
	return template, nil
}

// remedied adds a MachineHealthCheck that immediately replaces a worker whose node has a condition that only the spec
// sets.
func remedied(template []byte) ([]byte, error) {
	conditions := []byte("\n    unhealthyNodeConditions:")
	ours := []byte("\n      - {type: e2e.remediation.condition, status: \"False\", timeoutSeconds: 5}")
	template, err := replaceOnce(template, conditions, slices.Concat(conditions, ours))
	if err != nil {
		return nil, err
	}
	return replaceOnce(template, []byte("unhealthyLessThanOrEqualTo: 50%"), []byte("unhealthyLessThanOrEqualTo: 100%"))
}

func replaceOnce(template, old, replacement []byte) ([]byte, error) {
	if bytes.Count(template, old) != 1 {
		return nil, fmt.Errorf("a template has not got %q once", old)
	}
	return bytes.Replace(template, old, replacement, 1), nil
}
