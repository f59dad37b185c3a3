// SPDX-License-Identifier: Apache-2.0

// Package templates_test generates each cluster template with the real clusterctl, and checks that a real API server
// with the webhooks of Cluster API and of this provider would accept the result.
package templates_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

var (
	required = testflavors.Needed()
	optional = testflavors.Optional(
		"VCD_REGION", "VCD_USERNAME_B64", "VCD_PASSWORD_B64", "VCD_CCM_API_TOKEN_B64", "VCD_CCM_CREDENTIALS_SECRET",
		"VCD_CONTROL_PLANE_SIZING_POLICY", "VCD_CONTROL_PLANE_PLACEMENT_POLICY", "VCD_WORKER_SIZING_POLICY",
		"VCD_WORKER_STORAGE_PROFILE", "DISK_SIZE", "CNI", "KUBE_VIP_IMAGE", "VIP_NETWORK_INTERFACE",
		"BGP_PEER_PASSWORD_B64", "BGP_PEER_MULTIHOP", "POD_CIDR_IPV6", "SSH_PUBLIC_KEY",
	)
)

// kinds maps each flavor to kinds of its objects.
var kinds = map[string][]string{
	"": {
		"cluster",
		"vcdcluster",
		"vcdidentity",
		"secret",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
		"machinehealthcheck",
	},
	"ipam": {
		"cluster",
		"vcdcluster",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
	},
	"bgp": {
		"cluster",
		"vcdcluster",
		"vcdidentity",
		"secret",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
		"machinehealthcheck",
	},
	"dual-stack": {
		"cluster",
		"vcdcluster",
		"vcdidentity",
		"secret",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
		"machinehealthcheck",
	},
	"flatcar": {
		"cluster",
		"vcdcluster",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
		"machinehealthcheck",
	},
	"proxy": {
		"cluster",
		"vcdcluster",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
	},
	"edge-gateway": {
		"cluster",
		"vcdcluster",
		"vcdidentity",
		"secret",
		"kubeadmcontrolplane",
		"vcdmachinetemplate",
		"machinedeployment",
		"kubeadmconfigtemplate",
		"machinehealthcheck",
	},
	"zones": {
		"cluster",
		"vcdcluster",
		"vcdfailuredomain",
		"vcddeploymentzone",
		"kubeadmcontrolplane",
		"machinedeployment",
	},
	"development": {"cluster", "vcdcluster", "vcdidentity", "secret", "kubeadmcontrolplane", "vcdmachinetemplate"},
}

func TestTemplates(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a management cluster; left out by -short")
	}
	ctx := t.Context()
	g := NewWithT(t)
	w, err := framework.Start(ctx, framework.Options{
		Dir:                 t.TempDir(),
		Out:                 t.Output(),
		StorageVersionsOnly: true,
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(w.Stop()).To(Succeed()) })
	all := maps.Clone(required)
	maps.Copy(all, optional)

	t.Run("with only the required variables", func(t *testing.T) { testFlavors(ctx, t, w, required) })
	t.Run("with optional variables", func(t *testing.T) { testFlavors(ctx, t, w, all) })
	t.Run("clusterctl reports missing variables", func(t *testing.T) {
		g := NewWithT(t)
		publish(t, w, nil)
		var missing error
		for flavor := range kinds {
			_, err := generate(ctx, w, flavor)
			missing = errors.Join(missing, err)
		}
		for name := range required {
			g.Expect(missing).To(MatchError(ContainSubstring(name)))
		}
	})
	t.Run("each variable of the ClusterClass changes only the expected objects",
		func(t *testing.T) { testVariables(ctx, t, w) })
	t.Run("admission validates the variables of the ClusterClass", func(t *testing.T) { testInvalidVariables(ctx, t, w) })
	t.Run("admission validates the objects", func(t *testing.T) {
		g := NewWithT(t)
		wrong := maps.Clone(required)
		wrong["CONTROL_PLANE_ENDPOINT_IP"] = "not_an_address"
		publish(t, w, wrong)
		manifests, err := generate(ctx, w, "")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = dryRun(ctx, w, manifests)
		g.Expect(err).To(MatchError(ContainSubstring("spec.controlPlaneEndpoint")))
	})
}

func testFlavors(ctx context.Context, t *testing.T, w *framework.ManagementCluster, variables map[string]string) {
	t.Helper()
	publish(t, w, variables)
	for flavor, want := range kinds {
		t.Run(strings.TrimSpace("flavor "+flavor), func(t *testing.T) {
			g := NewWithT(t)

			manifests, err := generate(ctx, w, flavor)
			g.Expect(err).NotTo(HaveOccurred())
			applied, err := dryRun(ctx, w, manifests)

			g.Expect(err).NotTo(HaveOccurred())
			for _, kind := range want {
				g.Expect(string(applied)).To(MatchRegexp(`(?m)^` + kind + `[./].* created \(server dry run\)$`))
			}
		})
	}
}

// publish creates a local repository with a release of the work tree, and a configuration of clusterctl with the
// variables.
func publish(t *testing.T, w *framework.ManagementCluster, variables map[string]string) {
	t.Helper()
	g := NewWithT(t)
	files := map[string][]byte{"infrastructure-components.yaml": w.Components}
	paths, err := filepath.Glob(filepath.Join(w.Root, "templates", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, path := range append(paths, filepath.Join(w.Root, "metadata.yaml")) {
		files[filepath.Base(path)], err = os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(w.LocalRepository(stack.Repository{
		Version:   framework.Version,
		Files:     files,
		Variables: variables,
	})).To(Succeed())
}

func generate(ctx context.Context, w *framework.ManagementCluster, flavor string) ([]byte, error) {
	return w.Clusterctl(ctx, "generate", "cluster", "demo", "--infrastructure=vcd", "--flavor="+flavor,
		"--target-namespace=default",
		"--kubernetes-version=v1.36.3", "--control-plane-machine-count=3", "--worker-machine-count=2")
}

func dryRun(ctx context.Context, w *framework.ManagementCluster, manifests []byte) ([]byte, error) {
	return w.Kubectl(ctx, bytes.NewReader(manifests), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
}
