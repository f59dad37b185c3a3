// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestThreeControlPlanesOfRealNodes powers off the VM with the virtual IP, and waits until a health check has replaced
// it.
func TestThreeControlPlanesOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) { o.controlPlanes = 3 })
	s.run("the virtual IP fails over to another control plane", (*realCluster).testFailover)
	s.run("a health check replaces the control plane", (*realCluster).testRemediation)
	s.deleteCluster()
}

// failoverWithin is the limit for the expiry of kube-vip's lease of 15 s and an election of etcd on a busy machine.
// Both take 20 s on an idle machine.
const failoverWithin = time.Minute

func (s *realCluster) testFailover() {
	holder := s.vipHolder()
	s.Expect(holder).NotTo(BeEmpty())
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	started := time.Now()
	s.powerOff(holder)
	s.Eventually(s.vipHolder, nodeWithin, pollTest).ShouldNot(Or(BeEmpty(), Equal(holder)))
	s.Eventually(api.request, nodeWithin, probeEvery).Should(Succeed())
	s.t.Logf("%s is powered off, %s has the virtual IP, which responds after %s", holder, s.vipHolder(),
		time.Since(started).Round(100*time.Millisecond))
	api.finish(s.t)
	web.finish(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", failoverWithin))
}

// vipHolder returns the node that holds the virtual IP, or "" while the API server does not respond.
func (s *realCluster) vipHolder() string {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: "kube-system", Name: "plndr-cp-lock"}
	if s.workload().Get(s.t.Context(), key, lease) != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

const healthCheck = `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: control-planes, namespace: %s}
spec:
  clusterName: %s
  selector: {matchLabels: {%s: ""}}
  checks:
    unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 10}]
    unhealthyMachineConditions: [{type: InfrastructureReady, status: "False", timeoutSeconds: 10}]
`

func (s *realCluster) testRemediation() {
	lost := ""
	for _, m := range s.machines(true) {
		if s.vm(m.Name).Status != vcdsim.PoweredOn {
			lost = m.Name
		}
	}
	s.Expect(lost).NotTo(BeEmpty())
	api := s.probe("API server", "/readyz")
	started := time.Now()
	s.manage(fmt.Sprintf(healthCheck, clusterNamespace, clusterName, clusterv1.MachineControlPlaneLabel), "apply", "-f",
		"-")
	s.triggerReconcile(lost)
	s.Eventually(func(g Gomega) {
		names := []string{}
		for _, m := range s.machines(true) {
			names = append(names, m.Name)
		}
		g.Expect(names).NotTo(ContainElement(lost))
	}, rolloutWithin, pollTest).Should(Succeed())
	s.t.Logf("%s is gone after %s", lost, time.Since(started).Round(time.Second))
	s.waitUntilReady(4, rolloutWithin)
	s.t.Logf("its replacement is ready after %s", time.Since(started).Round(time.Second))
	api.finish(s.t)
	s.Expect(strings.Fields(s.kubectl("get", "nodes", "-o=name"))).To(HaveLen(4))
}

// triggerReconcile triggers a reconcile of a VCDMachine.
func (s *realCluster) triggerReconcile(name string) {
	m := s.vcdMachine(name)
	patch := client.MergeFrom(m.DeepCopy())
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["test/look"] = time.Now().Format(time.RFC3339Nano)
	s.Expect(s.q.client.Patch(s.t.Context(), m, patch)).To(Succeed())
}
