// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// TestKubeletsOfRealNodes lets the manager approve the serving certificates of kubelets, and reset the VM of one that
// hangs.
func TestKubeletsOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) { o.change = changeEach(withServingCertificates) })
	s.run("kubelets get serving certificates", (*realCluster).testServingCertificates)
	s.run("a kubelet that hangs recovers by a reset of its VM", (*realCluster).testReset)
	s.run("the kubelet has a serving certificate after the reset", (*realCluster).testServingCertificates)
	s.deleteCluster()
}

// kubeletPatches is the folder with kubeadm's patches, and kubeletPatch the one that makes kubelets request serving
// certificates.
const (
	kubeletPatches = "/etc/kubernetes/patches"
	kubeletPatch   = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
serverTLSBootstrap: true
`
)

// withServingCertificates makes the manager approve serving certificates, and kubelets request them.
func withServingCertificates(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "VCDCluster":
		return unstructured.SetNestedField(o.Object, string(infrav1.ServingCertificatesApprove), "spec", "kubeletServingCertificates")
	case "KubeadmControlPlane":
		return withKubeletPatch(o, "spec", "kubeadmConfigSpec")
	case "KubeadmConfigTemplate":
		return withKubeletPatch(o, "spec", "template", "spec")
	}
	return nil
}

// withKubeletPatch adds the patch to the kubeadm configuration at a path.
func withKubeletPatch(o *unstructured.Unstructured, path ...string) error {
	config, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return err
	}
	files, _ := config["files"].([]any)
	config["files"] = append(files, map[string]any{
		"path":        kubeletPatches + "/kubeletconfiguration0+merge.yaml",
		"permissions": "0644",
		"content":     kubeletPatch,
	})
	for _, part := range []string{"initConfiguration", "joinConfiguration"} {
		if configuration, ok := config[part].(map[string]any); ok {
			configuration["patches"] = map[string]any{"directory": kubeletPatches}
		}
	}
	return unstructured.SetNestedMap(o.Object, config, path...)
}

// testServingCertificates connects to all kubelets, and verifies their certificates by the authority of the cluster.
func (s *realCluster) testServingCertificates() {
	authority := x509.NewCertPool()
	s.Expect(authority.AppendCertsFromPEM(s.config().CAData)).To(BeTrue())
	for _, m := range append(s.machines(true), s.machines(false)...) {
		address := internalIP(s.node(m.Name))
		s.Eventually(func() error { return s.verifyKubelet(address, authority) }, nodeWithin, pollTest).Should(Succeed(), m.Name)
	}
	approved := s.kubectl("get", "csr", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving",
		"-o=jsonpath={.items[*].status.conditions[*].message}")
	s.Expect(approved).To(ContainSubstring("the machine in VMware Cloud Director"), "messages of the approvals")
}

// verifyKubelet returns an error if a kubelet has no certificate for its address.
func (s *realCluster) verifyKubelet(address string, authority *x509.CertPool) error {
	conn, err := s.q.booted.hypervisor.Dial(s.t.Context(), "tcp", net.JoinHostPort(address, "10250"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return tls.Client(conn, &tls.Config{RootCAs: authority, ServerName: address}).HandshakeContext(s.t.Context())
}

const resetOnce = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDRemediationTemplate
metadata: {name: reset-once, namespace: %[1]s}
spec:
  template:
    spec:
      strategy: {type: Reset, retryLimit: 1, timeoutSeconds: 300}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: workers, namespace: %[1]s}
spec:
  clusterName: %[2]s
  selector: {matchLabels: {%[3]s: %[2]s-md-0}}
  checks:
    unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 10}]
  remediation:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDRemediationTemplate, name: reset-once}
`

// testReset stops the kubelet of the worker without ending it, so that its Node becomes unhealthy.
func (s *realCluster) testReset() {
	name := s.worker()
	before := s.node(name)
	ids := s.vmIDs()
	boots := s.boots(name)
	s.manage(fmt.Sprintf(resetOnce, clusterNamespace, clusterName, clusterv1.MachineDeploymentNameLabel), "apply", "-f", "-")
	started := time.Now()
	s.inVM(name, "systemctl", "kill", "--signal=STOP", "kubelet")

	s.Eventually(func() int { return s.boots(name) }, nodeWithin, pollTest).Should(Equal(boots + 1))
	s.t.Logf("the VM is reset after %s", time.Since(started).Round(time.Second))
	reset := time.Now()
	s.Eventually(func() bool { return ready(s.node(name), reset) }, nodeWithin, pollTest).Should(BeTrue())
	s.t.Logf("the Node is ready again after %s", time.Since(started).Round(time.Second))
	s.Eventually(func(g Gomega) {
		var all infrav1.VCDRemediationList
		g.Expect(s.q.client.List(s.t.Context(), &all, client.InNamespace(clusterNamespace))).To(Succeed())
		g.Expect(all.Items).To(BeEmpty())
	}, nodeWithin, pollTest).Should(Succeed(), "the remediation ends")
	s.Expect(s.worker()).To(Equal(name), "the machine is not replaced")
	s.Expect(s.node(name).UID).To(Equal(before.UID))
	s.Expect(s.vmIDs()).To(Equal(ids))
	s.Expect(s.boots(name)).To(Equal(boots+1), "the VM is reset once")
}
