package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// The machine templates that the upgrade ends with.
const (
	upgradedControlPlane = "upgraded-control-plane"
	upgradedWorkers      = "upgraded-workers"
)

// flavors are the templates that specs want besides the usual one, as changes of it.
func flavors() map[string]func([]byte) ([]byte, error) {
	return map[string]func([]byte) ([]byte, error){"upgrades": upgrades, "taints": tainted, "md-remediation": remedied}
}

var separator = []byte("\n---\n")

// upgrades starts with the VM template of the old Kubernetes version, and has machine templates with the new one.
func upgrades(template []byte) ([]byte, error) {
	const variable = `"${VCD_TEMPLATE_NAME}"`
	var added [][]byte
	for from, to := range map[string]string{
		`"${CLUSTER_NAME}-control-plane"`: upgradedControlPlane, `"${CLUSTER_NAME}-md-0"`: upgradedWorkers,
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

// tainted has the taints on control planes and workers that the spec of rollouts expects at the beginning.
func tainted(template []byte) ([]byte, error) {
	taints := []byte(`
      taints:
        - {key: pre-existing-on-initialization-taint, value: on-initialization-value, effect: PreferNoSchedule, propagation: OnInitialization}
        - {key: pre-existing-always-taint, value: always-value, effect: PreferNoSchedule, propagation: Always}`)
	for _, machine := range [][]byte{
		[]byte("\n  machineTemplate:\n    spec:"), []byte("\n    spec:\n      clusterName: \"${CLUSTER_NAME}\""),
	} {
		var err error
		if template, err = replaceOnce(template, machine, slices.Concat(machine, taints)); err != nil {
			return nil, err
		}
	}
	return template, nil
}

// remedied has a MachineHealthCheck that replaces any worker at once whose node has a condition that only the spec
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
		return nil, fmt.Errorf("the usual template has not got %q once", old)
	}
	return bytes.Replace(template, old, replacement, 1), nil
}
