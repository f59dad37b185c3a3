// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterapi "sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// drainedMachines is the number of machines of the spec: three control planes and a worker.
const drainedMachines = 4

// pauseOfSpec is the image of the pods of the spec. The nodes have the same program as the image that their release of
// Kubernetes uses.
const pauseOfSpec = "registry.k8s.io/pause:3.10.1"

// TestNodeDrainOfRealNodes runs the spec about draining that Cluster API shares with its providers: the order of pods,
// pods that are skipped or waited for, PodDisruptionBudgets, and the timeout. The cluster uses the shipped ClusterClass.
func TestNodeDrainOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealSite(t)
	s.Expect(s.q.startManagement(t.Context())).To(Succeed())
	t.Setenv("TMPDIR", t.TempDir()) // The framework leaves kubeconfigs there.
	Describe("Draining nodes", func() {
		clusterapi.NodeDrainTimeoutSpec(t.Context(), s.nodeDrain)
	})
	RegisterFailHandler(Fail)
	s.Expect(RunSpecs(t, "Cluster API's spec about draining nodes")).To(BeTrue())
	s.Eventually(s.q.checkLeftovers, nodeWithin, pollTest).Should(Succeed())
}

// nodeDrain returns the input of the spec.
func (s *realCluster) nodeDrain() clusterapi.NodeDrainTimeoutSpecInput {
	return clusterapi.NodeDrainTimeoutSpecInput{
		E2EConfig: &clusterctl.E2EConfig{
			Variables: map[string]string{clusterapi.KubernetesVersion: programs.KubernetesVersion},
			Intervals: map[string][]string{
				"default/wait-cluster":              {nodeWithin.String(), "1s"},
				"default/wait-control-plane":        {rolloutWithin.String(), "1s"},
				"default/wait-worker-nodes":         {rolloutWithin.String(), "1s"},
				"default/wait-deployment-available": {nodeWithin.String(), "1s"},
				"default/wait-machine-deleted":      {nodeWithin.String(), "1s"},
				"default/wait-delete-cluster":       {rolloutWithin.String(), "1s"},
			},
		},
		ClusterctlConfigPath:  s.q.stack.ClusterctlConfig(),
		BootstrapClusterProxy: s.clusterProxy(),
		ArtifactFolder:        filepath.Join(s.q.dir, "artifacts"),
		ControlPlaneWaiters: clusterctl.ControlPlaneWaiters{
			WaitForControlPlaneInitialized:   s.waitForNetwork,
			WaitForControlPlaneMachinesReady: s.waitForPause,
		},
	}
}

// waitForNetwork waits for the first control plane, and installs the network plug-in.
func (s *realCluster) waitForNetwork(
	ctx context.Context, input clusterctl.ApplyCustomClusterTemplateAndWaitInput, result *clusterctl.ApplyCustomClusterTemplateAndWaitResult,
) {
	result.ControlPlane = framework.DiscoveryAndWaitForControlPlaneInitialized(ctx,
		framework.DiscoveryAndWaitForControlPlaneInitializedInput{
			Lister:  input.ClusterProxy.GetClient(),
			Cluster: result.Cluster,
		}, input.WaitForControlPlaneIntervals...)
	manifest, err := os.ReadFile(s.q.booted.network)
	Expect(err).NotTo(HaveOccurred())
	cluster := input.ClusterProxy.GetWorkloadCluster(ctx, result.Cluster.Namespace, result.Cluster.Name)
	Expect(cluster.CreateOrUpdate(ctx, manifest)).To(Succeed())
}

// waitForPause waits for the control planes, and adds the image of the spec's pods to all nodes.
func (s *realCluster) waitForPause(
	ctx context.Context, input clusterctl.ApplyCustomClusterTemplateAndWaitInput, result *clusterctl.ApplyCustomClusterTemplateAndWaitResult,
) {
	framework.WaitForControlPlaneAndMachinesReady(ctx, framework.WaitForControlPlaneAndMachinesReadyInput{
		GetLister:    input.ClusterProxy.GetClient(),
		Cluster:      result.Cluster,
		ControlPlane: result.ControlPlane,
	}, input.WaitForControlPlaneIntervals...)
	Eventually(s.vmIDs, nodeWithin, pollTest).Should(HaveLen(drainedMachines))
	for _, vm := range s.q.site.Simulator.State().VMs {
		Eventually(func() error { return s.addPause(vm.Name) }, nodeWithin, pollTest).Should(Succeed()) //nolint:contextcheck // commands in VMs use the context of the test
	}
}

// addPause gives the pause image of a node another name.
func (s *realCluster) addPause(vm string) error {
	images, err := s.tryInVM(vm, "ctr", "--namespace=k8s.io", "images", "list", "--quiet")
	if err != nil {
		return err
	}
	for image := range strings.Lines(images) {
		if image = strings.TrimSpace(image); strings.HasPrefix(image, "registry.k8s.io/pause:") {
			_, err = s.tryInVM(vm, "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, pauseOfSpec)
			return err
		}
	}
	return fmt.Errorf("VM %s has no pause image", vm)
}

// A clusterProxy is the ClusterProxy of the management cluster. It connects to workload clusters through the proxy to
// the networks of the VMs.
type clusterProxy struct {
	framework.ClusterProxy

	guests *url.URL
}

func (s *realCluster) clusterProxy() clusterProxy {
	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	guests, err := url.Parse(s.q.booted.proxyURL)
	Expect(err).NotTo(HaveOccurred())
	return clusterProxy{
		ClusterProxy: framework.NewClusterProxy("management", s.q.stack.Kubeconfig(), scheme),
		guests:       guests,
	}
}

// GetWorkloadCluster returns the ClusterProxy of a workload cluster.
func (p clusterProxy) GetWorkloadCluster(ctx context.Context, namespace, name string, options ...framework.Option) framework.ClusterProxy {
	options = append(options, framework.WithRESTConfigModifier(func(config *rest.Config) {
		config.Proxy = http.ProxyURL(p.guests)
	}))
	return p.ClusterProxy.GetWorkloadCluster(ctx, namespace, name, options...)
}
