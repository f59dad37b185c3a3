// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
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

// TestASelfHostedClusterOfRealNodes moves a cluster into itself, so that its managers run in it as pods. The cluster
// scales itself and replaces all its nodes, including those of its managers. It moves back before its deletion.
func TestASelfHostedClusterOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) { o.providers = []stack.Part{stack.IPAM} })
	outside := s.q.client
	s.run("clusterctl init installs Cluster API and this provider in the cluster", (*realCluster).installProviders)
	s.run("the cluster moves into itself", (*realCluster).testMoveIn)
	s.run("the cluster scales itself", (*realCluster).testSelfScaling)
	s.run("the cluster replaces its machines", (*realCluster).testSelfReplacement)
	s.run("the cluster moves back", func(s *realCluster) { s.testMoveBack(outside) })
	s.deleteCluster()
}

// installProviders runs clusterctl init, as a user does to create a management cluster. The images are in the image
// store of the nodes.
func (s *realCluster) installProviders() {
	releases, err := stack.Releases(s.q.stack)
	s.Expect(err).NotTo(HaveOccurred())
	components, err := stack.WithImage(s.q.components, s.q.booted.images[0])
	s.Expect(err).NotTo(HaveOccurred())
	files, err := simsite.ReleaseFiles(s.q.root, components)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.q.stack.LocalRepository(stack.Repository{
		Version:     framework.Version,
		Files:       files,
		Others:      releases,
		CertManager: stack.CertManager(),
		Variables:   map[string]string{"CLUSTER_TOPOLOGY": "true"},
	})).To(Succeed())
	stop := s.issueCertificates()
	defer stop()
	_, err = s.q.stack.Clusterctl(s.t.Context(), "init", "--kubeconfig="+s.q.kubeconfig(),
		"--core=cluster-api:"+programs.ClusterAPIVersion, "--bootstrap=kubeadm:"+programs.ClusterAPIVersion,
		"--control-plane=kubeadm:"+programs.ClusterAPIVersion, "--ipam=in-cluster:"+programs.IPAMVersion,
		"--infrastructure=vcd:"+framework.Version, "--wait-providers", "--wait-provider-timeout=300")
	s.Expect(err).NotTo(HaveOccurred(), "%s", s.managerPods())
	s.t.Log(s.managerPods())
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
	s.waitUntilReady(2, nodeWithin)
	s.Expect(s.vmIDs()).To(Equal(before))
	s.Expect(simsite.Writes(s.q.site.Simulator, requests)).To(BeEmpty(), "writes to VCD during the move")
}

func (s *realCluster) testMoveBack(outside client.Client) {
	before := s.vmIDs()
	requests := len(s.q.site.Simulator.Requests())
	inside := s.q.client
	_, err := s.q.stack.Clusterctl(s.t.Context(), "move", "--namespace="+clusterNamespace,
		"--kubeconfig="+s.q.kubeconfig(), "--to-kubeconfig="+s.q.stack.Kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	s.q.client = outside
	s.Expect(s.exist(inside)).To(BeFalse(), "machines in the self-hosted cluster after the move")
	s.waitUntilReady(3, nodeWithin)
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
	s.waitUntilReady(3, nodeWithin)
	s.t.Logf("a second worker is ready after %s", time.Since(started).Round(time.Second))
}

// testSelfReplacement replaces the nodes of the managers, while the Service and the API server respond.
func (s *realCluster) testSelfReplacement() {
	before := slices.Collect(maps.Keys(s.vmIDs()))
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	for _, owner := range []string{"machinedeployment/" + clusterName + "-md-0", "kubeadmcontrolplane/" + clusterName + "-control-plane"} {
		started := time.Now()
		_, err := s.q.stack.Clusterctl(s.t.Context(), "alpha", "rollout", "restart", owner,
			"--namespace="+clusterNamespace, "--kubeconfig="+s.q.kubeconfig())
		s.Expect(err).NotTo(HaveOccurred())
		s.Eventually(func(g Gomega) {
			v, err := s.q.observe(s.t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.available(3)).To(BeTrue(), strings.Join(v.lines(), "\n"))
			for i := range v.machines {
				_, controlPlane := v.machines[i].Labels[clusterv1.MachineControlPlaneLabel]
				if controlPlane == strings.HasPrefix(owner, "kubeadmcontrolplane") {
					g.Expect(before).NotTo(ContainElement(v.machines[i].Name))
				}
			}
		}, rolloutWithin, pollTest).Should(Succeed())
		s.t.Logf("%s has new machines after %s", owner, time.Since(started).Round(time.Second))
	}
	api.finish(s.t)
	web.finish(s.t)
	s.Expect(slices.Collect(maps.Keys(s.vmIDs()))).To(HaveLen(3))
	s.Expect(s.vmIDs()).NotTo(Or(HaveKey(before[0]), HaveKey(before[1]), HaveKey(before[2])))
	var pods corev1.PodList
	s.Expect(s.workload().List(s.t.Context(), &pods, client.HasLabels{"cluster.x-k8s.io/provider"})).To(Succeed())
	s.Expect(pods.Items).NotTo(BeEmpty())
	for i := range pods.Items {
		s.Expect(before).NotTo(ContainElement(pods.Items[i].Spec.NodeName))
	}
	s.t.Log(s.managerPods())
}
