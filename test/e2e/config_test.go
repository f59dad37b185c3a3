package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	clusterapi "sigs.k8s.io/cluster-api/test/e2e"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/world"
)

const (
	// upgradeFrom is the Kubernetes version that upgrades start from; they end at programs.KubernetesVersion.
	upgradeFrom = "v1.35.4"
	// endpoint stands in templates for the control plane endpoint, until the proxy puts a free one there.
	endpoint = "192.0.2.1"
	// usual is the template that users start with.
	usual = "cluster-template.yaml"
)

// variables are what a user of the simulated tenant writes into clusterctl.yaml, and what the specs want to know.
func (s *site) variables() map[string]string {
	org := s.simulator.State().Model.Orgs[1]
	user, vdc := org.Users[1], org.VDCs[0]
	encode := base64.StdEncoding.EncodeToString
	return map[string]string{
		"VCD_SITE":                     s.simulator.URL(),
		"VCD_ORGANIZATION":             org.Name,
		"VCD_ORGANIZATION_VDC":         vdc.Name,
		"VCD_ORGANIZATION_VDC_NETWORK": vdc.Networks[0].Name,
		"VCD_CATALOG":                  org.Catalogs[0].Name,
		"VCD_TEMPLATE_NAME":            templateName(programs.KubernetesVersion),
		"VCD_USERNAME_B64":             encode([]byte(user.Name)),
		"VCD_PASSWORD_B64":             encode([]byte(user.Password)),
		"VCD_CA_BUNDLE_B64":            encode(s.simulator.CA()),
		"CONTROL_PLANE_ENDPOINT_IP":    endpoint,

		clusterapi.KubernetesVersion:               programs.KubernetesVersion,
		clusterapi.KubernetesVersionUpgradeFrom:    upgradeFrom,
		clusterapi.KubernetesVersionUpgradeTo:      programs.KubernetesVersion,
		clusterapi.CPMachineTemplateUpgradeTo:      upgradedControlPlane,
		clusterapi.WorkersMachineTemplateUpgradeTo: upgradedWorkers,
	}
}

// intervals are how long the specs wait, and how often they look.
func intervals() map[string][]string {
	return map[string][]string{
		"default/wait-cluster":                         {"3m", "1s"},
		"default/wait-control-plane":                   {"5m", "1s"},
		"default/wait-worker-nodes":                    {"5m", "1s"},
		"default/wait-delete-cluster":                  {"3m", "1s"},
		"default/wait-machine-upgrade":                 {"5m", "1s"},
		"default/wait-control-plane-upgrade":           {"5m", "1s"},
		"default/wait-machine-deployment-upgrade":      {"5m", "1s"},
		"default/wait-machine-pool-upgrade":            {"10s", "1s"},
		"default/wait-machine-remediation":             {"3m", "1s"},
		"default/wait-nodes-ready":                     {"3m", "1s"},
		"default/wait-machine-pool-nodes":              {"10s", "1s"},
		"default/wait-resource-versions-become-stable": {"4m", "10s"},
		"default/wait-resource-versions-remain-stable": {"1m", "5s"},
	}
}

// writeRepository writes a release of this provider with the specs' templates for clusterctl, and its configuration.
func writeRepository(s *site, variables map[string]string) (string, error) {
	files := map[string][]byte{"infrastructure-components.yaml": s.Components}
	paths, err := filepath.Glob(filepath.Join(s.Root, "test", "e2e", "testdata", "*.yaml"))
	if err != nil {
		return "", err
	}
	for _, path := range append(paths, filepath.Join(s.Root, "metadata.yaml"), filepath.Join(s.Root, "templates", usual)) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("reading what a release holds: %w", err)
		}
		files[filepath.Base(path)] = content
	}
	for flavor, change := range flavors() {
		template, err := change(files[usual])
		if err != nil {
			return "", fmt.Errorf("making template %s: %w", flavor, err)
		}
		files["cluster-template-"+flavor+".yaml"] = template
	}
	return stack.LocalRepository(filepath.Join(filepath.Dir(s.Dir()), "clusterctl"), stack.Repository{
		Version: world.Version, Files: files, Variables: variables,
	})
}
