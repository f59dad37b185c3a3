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

// TestThreeControlPlanesOfRealNodes stops the VM that holds the virtual IP, and waits until a health check has replaced
// it.
func TestThreeControlPlanesOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newScene(t, func(o *options) { o.controlPlanes = 3 })
	s.run("the API server answers again when the holder of the virtual IP ended", (*scene).failsOver)
	s.run("a health check replaces it", (*scene).remediates)
	s.deleted()
}

// failoverWithin is how long the expiry of kube-vip's lease of 15 s and an election of etcd may take on a busy machine.
// They take 20 s on an idle one.
const failoverWithin = time.Minute

func (s *scene) failsOver() {
	holder := s.holder()
	s.Expect(holder).NotTo(BeEmpty())
	api := s.probe("API server", "/readyz")
	web := s.probe("LoadBalancer", s.q.website)
	began := time.Now()
	s.powerOff(holder)
	s.Eventually(s.holder, nodeWithin, pollTest).ShouldNot(Or(BeEmpty(), Equal(holder)))
	s.Eventually(api.ask, nodeWithin, probeEvery).Should(Succeed())
	s.t.Logf("%s ended, %s has the virtual IP; it answers after %s", holder, s.holder(),
		time.Since(began).Round(100*time.Millisecond))
	api.end(s.t)
	web.end(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", failoverWithin))
}

// holder returns the holder of the virtual IP; empty while the API server does not respond.
func (s *scene) holder() string {
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

func (s *scene) remediates() {
	lost := ""
	for _, m := range s.machines(true) {
		if s.vm(m.Name).Status != vcdsim.PoweredOn {
			lost = m.Name
		}
	}
	s.Expect(lost).NotTo(BeEmpty())
	api := s.probe("API server", "/readyz")
	began := time.Now()
	s.manage(fmt.Sprintf(healthCheck, clusterNamespace, clusterName, clusterv1.MachineControlPlaneLabel), "apply", "-f",
		"-")
	s.look(lost)
	s.Eventually(func(g Gomega) {
		names := []string{}
		for _, m := range s.machines(true) {
			names = append(names, m.Name)
		}
		g.Expect(names).NotTo(ContainElement(lost))
	}, rolloutWithin, pollTest).Should(Succeed())
	s.t.Logf("%s is gone after %s", lost, time.Since(began).Round(time.Second))
	s.settled(4, rolloutWithin)
	s.t.Logf("its replacement is ready after %s", time.Since(began).Round(time.Second))
	api.end(s.t)
	s.Expect(strings.Fields(s.kubectl("get", "nodes", "-o=name"))).To(HaveLen(4))
}

// look makes the manager reconcile a machine now.
func (s *scene) look(name string) {
	m := s.vcdMachine(name)
	patch := client.MergeFrom(m.DeepCopy())
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["test/look"] = time.Now().Format(time.RFC3339Nano)
	s.Expect(s.q.client.Patch(s.t.Context(), m, patch)).To(Succeed())
}
