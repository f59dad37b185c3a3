// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// Names of the machine templates at the end of the upgrade.
const (
	upgradedControlPlane = "upgraded-control-plane"
	upgradedWorkers      = "upgraded-workers"
)

// flavors returns the additional flavors of specs. Each function creates the template of a flavor from the default
// template.
func flavors() map[string]func([]byte) ([]byte, error) {
	return map[string]func([]byte) ([]byte, error){"upgrades": withUpgrade, "taints": withTaints, "md-remediation": withRemediation}
}

// The shipped ClusterClass and its cluster template, the same with a list of versions for the chained upgrade, and a
// cluster template with taints.
const (
	class           = "clusterclass-quick-start.yaml"
	classTemplate   = "cluster-template-topology.yaml"
	chainedClass    = "clusterclass-chained.yaml"
	chainedTemplate = "cluster-template-chained.yaml"
	taintedTopology = "cluster-template-topology-taints.yaml"
)

// addTopologies adds the files for specs with ClusterClasses to the files of a release.
func addTopologies(files map[string][]byte) error {
	var err error
	if files[taintedTopology], err = withTopologyTaints(files[classTemplate]); err != nil {
		return err
	}
	chained := func(manifest []byte) []byte {
		return bytes.ReplaceAll(manifest, []byte("quick-start"), []byte("chained"))
	}
	files[chainedTemplate] = chained(files[classTemplate])
	files[chainedClass], err = replaceOnce(chained(files[class]), []byte("\nspec:\n  infrastructure:\n"), fmt.Appendf(nil,
		"\nspec:\n  kubernetesVersions: [%s, %s, %s]\n  infrastructure:\n", chainFrom, upgradeFrom,
		programs.KubernetesVersion))
	return err
}

// withTopologyTaints sets exactly the initial taints on control planes and workers that the rollout spec expects. It
// disables the cloud controller manager, because nothing would remove its taint.
func withTopologyTaints(template []byte) ([]byte, error) {
	const taints = `
%[1]staints:
%[1]s  - {key: pre-existing-always-taint, value: always-value, effect: PreferNoSchedule, propagation: Always}
%[1]s  - {key: pre-existing-on-initialization-taint, value: on-initialization-value, effect: PreferNoSchedule, propagation: OnInitialization}`
	var err error
	for after, indent := range map[string]string{
		"replicas: ${CONTROL_PLANE_MACHINE_COUNT}": "      ",
		"replicas: ${WORKER_MACHINE_COUNT}":        "          ",
	} {
		template, err = insertAfter(template, after, fmt.Sprintf(taints, indent))
		if err != nil {
			return nil, err
		}
	}
	return replaceOnce(template, []byte("mode: Managed\n          identityRef:\n            name: \"${CLUSTER_NAME}-ccm\"\n"),
		[]byte("mode: None\n"))
}

var separator = []byte("\n---\n")

// withUpgrade sets the VM template of the old Kubernetes version, and adds machine templates with that of the new one.
func withUpgrade(template []byte) ([]byte, error) {
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
		return nil, errors.New("the default template does not have the two expected machine templates")
	}
	old := bytes.ReplaceAll(template, []byte(variable), []byte(simsite.TemplateName(upgradeFrom)))
	result := append([][]byte{old}, added...)
	return bytes.ReplaceAll(bytes.Join(result, separator), []byte(variable),
		[]byte(simsite.TemplateName(programs.KubernetesVersion))), nil
}

// withTaints sets the initial taints on control planes and workers that the rollout spec expects.
func withTaints(template []byte) ([]byte, error) {
	const taints = `
      taints:
        - {key: pre-existing-on-initialization-taint, value: on-initialization-value, effect: PreferNoSchedule, propagation: OnInitialization}
        - {key: pre-existing-always-taint, value: always-value, effect: PreferNoSchedule, propagation: Always}`
	for _, machine := range []string{
		"\n  machineTemplate:\n    spec:",
		"\n    spec:\n      clusterName: \"${CLUSTER_NAME}\"",
	} {
		var err error
		if template, err = insertAfter(template, machine, taints); err != nil {
			return nil, err
		}
	}
	return template, nil
}

// withRemediation extends the MachineHealthCheck, so that it soon replaces a worker whose Node has a condition that
// only the spec sets.
func withRemediation(template []byte) ([]byte, error) {
	template, err := insertAfter(template, "\n    unhealthyNodeConditions:",
		"\n      - {type: e2e.remediation.condition, status: \"False\", timeoutSeconds: 5}")
	if err != nil {
		return nil, err
	}
	return replaceOnce(template, []byte("unhealthyLessThanOrEqualTo: 50%"), []byte("unhealthyLessThanOrEqualTo: 100%"))
}

func replaceOnce(template, old, replacement []byte) ([]byte, error) {
	if bytes.Count(template, old) != 1 {
		return nil, fmt.Errorf("a template does not contain %q exactly once", old)
	}
	return bytes.Replace(template, old, replacement, 1), nil
}

// insertAfter inserts a text after the only occurrence of another one.
func insertAfter(template []byte, before, added string) ([]byte, error) {
	return replaceOnce(template, []byte(before), []byte(before+added))
}
