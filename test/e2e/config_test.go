// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	clusterapi "sigs.k8s.io/cluster-api/test/e2e"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

const (
	// upgradeFrom is the initial Kubernetes version of upgrades. The target version is programs.KubernetesVersion.
	upgradeFrom = "v1.35.4"
	// chainFrom is the initial version of a chained upgrade, which goes through upgradeFrom.
	chainFrom = "v1.34.3"
	// endpoint is the placeholder for the control plane endpoint in templates. The proxy replaces it with a free
	// address.
	endpoint = "192.0.2.1"
	// defaultTemplate is the default template for users.
	defaultTemplate = "cluster-template.yaml"
	// gatewayTemplate is the template for clusters whose endpoint is on an edge gateway.
	gatewayTemplate = "cluster-template-edge-gateway.yaml"
)

// variables returns the variables that a user of the simulated tenant sets in clusterctl.yaml, and the variables of the
// specs.
func variables(s suite) map[string]string {
	variables := s.Variables()
	maps.Copy(variables, map[string]string{
		"CONTROL_PLANE_ENDPOINT_IP":                endpoint,
		clusterapi.KubernetesVersion:               programs.KubernetesVersion,
		clusterapi.KubernetesVersionUpgradeFrom:    upgradeFrom,
		clusterapi.KubernetesVersionUpgradeTo:      programs.KubernetesVersion,
		clusterapi.CPMachineTemplateUpgradeTo:      upgradedControlPlane,
		clusterapi.WorkersMachineTemplateUpgradeTo: upgradedWorkers,
	})
	return variables
}

// intervals returns the timeouts and polling intervals of the specs.
func intervals() map[string][]string {
	return map[string][]string{
		"default/wait-cluster":                         {"10m", "1s"},
		"default/wait-control-plane":                   {"10m", "1s"},
		"default/wait-worker-nodes":                    {"10m", "1s"},
		"default/wait-delete-cluster":                  {"10m", "1s"},
		"default/wait-machine-upgrade":                 {"10m", "1s"},
		"default/wait-control-plane-upgrade":           {"10m", "1s"},
		"default/wait-machine-deployment-upgrade":      {"10m", "1s"},
		"default/wait-machine-pool-upgrade":            {"10s", "1s"},
		"default/wait-machine-remediation":             {"10m", "1s"},
		"default/wait-nodes-ready":                     {"10m", "1s"},
		"default/wait-machine-pool-nodes":              {"10s", "1s"},
		"default/wait-resource-versions-become-stable": {"10m", "10s"},
		"default/wait-resource-versions-remain-stable": {"1m", "5s"},
	}
}

// writeRepository writes a clusterctl repository with a release of this provider and the templates of the specs, and
// returns the path of the configuration of clusterctl.
func writeRepository(s suite, variables map[string]string) (string, error) {
	files, err := simsite.ReleaseFiles(s.Root, s.Components, "templates/"+defaultTemplate, "templates/"+class,
		"templates/"+classTemplate, "templates/"+gatewayTemplate)
	if err != nil {
		return "", err
	}
	if err := errors.Join(addTopologies(files), addFiles(files)); err != nil {
		return "", err
	}
	if files[adoptionTemplate], err = withAdoption(files[gatewayTemplate]); err != nil {
		return "", err
	}
	for flavor, change := range flavors() {
		template, err := change(files[defaultTemplate])
		if err != nil {
			return "", fmt.Errorf("creating template %s: %w", flavor, err)
		}
		files["cluster-template-"+flavor+".yaml"] = template
	}
	return stack.LocalRepository(filepath.Join(filepath.Dir(s.Dir()), "clusterctl"), stack.Repository{
		Version:   framework.Version,
		Files:     files,
		Variables: variables,
	})
}
