// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// nextProvider is the release of this provider that a self-hosted cluster upgrades itself to. It contains the same
// program as framework.Version.
const nextProvider = "v2.0.1"

// TestASelfHostedClusterOfRealNodes moves a cluster with three control planes into itself, so that its managers run in
// it as pods. The cluster scales itself, upgrades its own provider and its own Kubernetes version, and so replaces all
// its nodes, including those of its managers. It moves back before its deletion.
func TestASelfHostedClusterOfRealNodes(t *testing.T) {
	needsRealNodes(t, previousKubernetes, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.kubernetes = previousKubernetes
		o.controlPlanes = *realControlPlanes
		o.providers = []stack.Part{stack.IPAM}
	})
	outside := s.q.client
	s.run("clusterctl init installs Cluster API and this provider in the cluster", (*realCluster).installProviders)
	s.run("the cluster moves into itself", (*realCluster).testMoveIn)
	s.run("the cluster scales itself", (*realCluster).testSelfScaling)
	s.run("the cluster upgrades its provider", (*realCluster).testProviderUpgrade)
	s.run("the cluster upgrades its Kubernetes version", (*realCluster).testSelfUpgrade)
	s.run("the cluster moves back", func(s *realCluster) { s.testMoveBack(outside) })
	s.deleteCluster()
}

// installProviders runs clusterctl init, as a user does to create a management cluster. The images are in the image
// store of the nodes.
func (s *realCluster) installProviders() {
	s.offerProvider(framework.Version)
	stop := s.issueCertificates()
	defer stop()
	_, err := s.q.stack.Clusterctl(s.t.Context(), "init", "--kubeconfig="+s.q.kubeconfig(),
		"--core=cluster-api:"+programs.ClusterAPIVersion, "--bootstrap=kubeadm:"+programs.ClusterAPIVersion,
		"--control-plane=kubeadm:"+programs.ClusterAPIVersion, "--ipam=in-cluster:"+programs.IPAMVersion,
		"--infrastructure=vcd:"+framework.Version, "--wait-providers", "--wait-provider-timeout=300")
	s.Expect(err).NotTo(HaveOccurred(), "%s", s.managerPods())
	s.t.Log(s.managerPods())
}

// offerProvider adds a release of this provider to clusterctl's local repository.
func (s *realCluster) offerProvider(version string) {
	releases, err := stack.Releases(s.q.stack)
	s.Expect(err).NotTo(HaveOccurred())
	components, err := stack.WithImage(s.q.components, s.q.booted.images[0])
	s.Expect(err).NotTo(HaveOccurred())
	files, err := simsite.ReleaseFiles(s.q.root, components)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.q.stack.LocalRepository(stack.Repository{
		Version:     version,
		Files:       files,
		Others:      releases,
		CertManager: stack.CertManager(),
		Variables:   map[string]string{"CLUSTER_TOPOLOGY": "true"},
	})).To(Succeed())
}

// issueCertificates replaces cert-manager in the cluster until stop is called.
func (s *realCluster) issueCertificates() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	issuer := stack.NewIssuer(s.q.stack)
	inside := s.workload()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(pollTest)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := issuer.Certify(ctx, inside); err != nil && ctx.Err() == nil {
				s.t.Log("certificates:", err) // such as a conflict with clusterctl; the next tick retries
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// managerPods lists the pods of the managers, with their nodes.
func (s *realCluster) managerPods() string {
	return s.kubectl("get", "pods", "--all-namespaces", "--selector=cluster.x-k8s.io/provider", "-o=wide")
}

// testMoveIn moves the cluster into itself, and checks that the move changes no VM.
func (s *realCluster) testMoveIn() {
	before := s.vmIDs()
	requests := len(s.q.site.Simulator.Requests())
	started := time.Now()
	_, err := s.q.stack.Clusterctl(s.t.Context(), "move", "--namespace="+clusterNamespace,
		"--to-kubeconfig="+s.q.kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Logf("moved within %s", time.Since(started).Round(time.Second))
	s.Expect(s.exist(s.q.client)).To(BeFalse(), "machines in the former management cluster")
	s.q.client = s.workload()
	s.waitUntilReady(s.q.controlPlanes+s.q.workers, nodeWithin)
	s.Expect(s.vmIDs()).To(Equal(before))
	s.Expect(simsite.Writes(s.q.site.Simulator, requests)).To(BeEmpty(), "writes to VCD during the move")
}

// testMoveBack moves the cluster to the former management cluster. clusterctl rejects a target with an older provider.
// The manager there is the same program, so only its version in clusterctl's inventory changes.
func (s *realCluster) testMoveBack(outside client.Client) {
	before := s.vmIDs()
	requests := len(s.q.site.Simulator.Requests())
	inside := s.q.client
	s.manage("", "patch", "providers.clusterctl.cluster.x-k8s.io", "infrastructure-vcd", "--namespace=capvcd-system",
		"--type=merge", `--patch={"version": "`+nextProvider+`"}`)
	_, err := s.q.stack.Clusterctl(s.t.Context(), "move", "--namespace="+clusterNamespace,
		"--kubeconfig="+s.q.kubeconfig(), "--to-kubeconfig="+s.q.stack.Kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	s.q.client = outside
	s.Expect(s.exist(inside)).To(BeFalse(), "machines in the self-hosted cluster after the move")
	s.waitUntilReady(s.q.controlPlanes+s.q.workers, nodeWithin)
	s.Expect(s.vmIDs()).To(Equal(before))
	s.Expect(simsite.Writes(s.q.site.Simulator, requests)).To(BeEmpty(), "writes to VCD during the move")
}

// exist reports whether a management cluster has Machines.
func (s *realCluster) exist(c client.Client) bool {
	list := &clusterv1.MachineList{}
	s.Expect(c.List(s.t.Context(), list, client.InNamespace(clusterNamespace))).To(Succeed())
	return len(list.Items) > 0
}

func (s *realCluster) vmIDs() map[string]string {
	ids := map[string]string{}
	for _, vm := range s.q.site.Simulator.State().VMs {
		ids[vm.Name] = vm.ID
	}
	return ids
}

func (s *realCluster) testSelfScaling() {
	started := time.Now()
	s.kubectl("scale", "machinedeployment", clusterName+"-md-0", "--namespace="+clusterNamespace, "--replicas=2")
	s.q.workers = 2
	s.waitUntilReady(s.q.controlPlanes+s.q.workers, nodeWithin)
	s.t.Logf("a second worker is ready after %s", time.Since(started).Round(time.Second))
}

// testProviderUpgrade replaces the manager of this provider by that of the next release, and checks that the new one
// changes no VM.
func (s *realCluster) testProviderUpgrade() {
	before := s.vmIDs()
	requests := len(s.q.site.Simulator.Requests())
	s.offerProvider(nextProvider)
	stop := s.issueCertificates()
	defer stop()
	started := time.Now()
	_, err := s.q.stack.Clusterctl(s.t.Context(), "upgrade", "apply", "--kubeconfig="+s.q.kubeconfig(),
		"--infrastructure=vcd:"+nextProvider, "--wait-providers", "--wait-provider-timeout=300")
	s.Expect(err).NotTo(HaveOccurred(), "%s", s.managerPods())
	s.t.Logf("upgraded within %s", time.Since(started).Round(time.Second))
	s.Expect(s.kubectl("get", "providers.clusterctl.cluster.x-k8s.io", "--all-namespaces",
		"--field-selector=metadata.name=infrastructure-vcd", "-o=jsonpath={.items[*].version}")).To(Equal(nextProvider))
	s.waitUntilReady(s.q.controlPlanes+s.q.workers, nodeWithin)
	s.Expect(s.vmIDs()).To(Equal(before))
	s.Expect(simsite.Writes(s.q.site.Simulator, requests)).To(BeEmpty(), "writes to VCD during the upgrade")
}

// testSelfUpgrade upgrades Kubernetes, which replaces the nodes of the managers, while the Service and the API server
// respond.
func (s *realCluster) testSelfUpgrade() {
	before := slices.Collect(maps.Keys(s.vmIDs()))
	s.testUpgrade()
	s.Expect(s.vmIDs()).To(HaveLen(s.q.controlPlanes + s.q.workers))
	for _, name := range before {
		s.Expect(s.vmIDs()).NotTo(HaveKey(name))
	}
	var pods corev1.PodList
	s.Expect(s.workload().List(s.t.Context(), &pods, client.HasLabels{"cluster.x-k8s.io/provider"})).To(Succeed())
	s.Expect(pods.Items).NotTo(BeEmpty())
	for i := range pods.Items {
		s.Expect(before).NotTo(ContainElement(pods.Items[i].Spec.NodeName))
	}
	s.t.Log(s.managerPods())
}
