// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// TestKubeVIPByDaemonSetAndProxyOfRealNodes creates a cluster whose pods have the variables of an unreachable proxy,
// and whose virtual IP is announced by a DaemonSet.
func TestKubeVIPByDaemonSetAndProxyOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.flavor = "proxy"
		o.change = changeEach(withDaemonSet)
		o.variables = map[string]string{"HTTP_PROXY_URL": httpProxy}
	})
	s.run("the DaemonSet takes over the virtual IP", (*realCluster).testHandover)
	s.run("the DaemonSet does not use the proxy", (*realCluster).testKubeVIPWithoutProxy)
	s.run("the virtual IP survives a restart of the DaemonSet", (*realCluster).testKubeVIPRestart)
	s.run("the virtual IP survives a reboot of its node", (*realCluster).testControlPlaneReboot)
	s.deleteCluster()
}

// TestBGPOfRealNodes creates a cluster whose control planes announce the virtual IP to a router, with a password. The
// virtual IP is outside the networks of VMs, so that it is reachable only through the router.
func TestBGPOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	r := &router{password: "before"}
	s := newRealCluster(t, func(o *options) {
		o.controlPlanes = 3
		o.flavor = "bgp"
		o.change = changeEach(withDaemonSet)
		o.prepare = func(q *quickstart) error { return r.start(t, q) }
		o.variables = map[string]string{
			"CONTROL_PLANE_ENDPOINT_IP": "10.99.0.10",
			"BGP_AS":                    strconv.Itoa(nodesAS),
			"BGP_INTERFACE":             "ens192",
			"BGP_PEER_ADDRESS":          nodesGateway,
			"BGP_PEER_AS":               strconv.Itoa(routerAS),
			"BGP_PEER_PASSWORD_B64":     base64.StdEncoding.EncodeToString([]byte(r.password)),
		}
	})
	s.run("the DaemonSet takes over the virtual IP", (*realCluster).testHandover)
	s.run("the router requires the changed password", r.testPasswordChange)
	s.run("the virtual IP survives a restart of the DaemonSet", (*realCluster).testKubeVIPRestart)
	s.run("the virtual IP fails over to another control plane", (*realCluster).testFailover)
	s.deleteCluster()
}

// testPasswordChange changes the password in the Secret and then on the router, as a user does. Until the router has
// the new password, it has no sessions, and the virtual IP is unreachable.
func (r *router) testPasswordChange(s *realCluster) {
	const after = "after-$(X)" // kubelet would expand $(X)
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(HaveLen(s.q.controlPlanes))
	node := s.machines(true)[0].Name
	direct := s.workloadThrough(s.vm(node).NICs[0].Address)
	old := s.daemonSetPods(direct)
	s.Expect(old).To(HaveLen(s.q.controlPlanes))
	s.Expect(s.peers(direct)).To(Equal(peersWith(r.password)))
	api := s.probe("API server", "/readyz")
	started := time.Now()

	s.manage("", "--namespace="+clusterNamespace, "patch", "secret", clusterName+"-bgp", "--type=merge",
		"--patch="+fmt.Sprintf(`{"stringData": {"password": %q}}`, after))
	s.Eventually(func(g Gomega) {
		now := s.daemonSetPods(direct)
		g.Expect(now).To(HaveLen(s.q.controlPlanes))
		for name := range now {
			g.Expect(old).NotTo(HaveKey(name))
		}
		g.Expect(now).To(HaveEach(true), "ready")
	}, nodeWithin, pollTest).Should(Succeed())
	s.t.Logf("all pods have the new password %s after it was stored", time.Since(started).Round(time.Second))
	s.Expect(s.peers(direct)).To(Equal(peersWith(after)))
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(BeEmpty())
	s.Consistently(r.sessions, refusedFor, pollTest).Should(BeEmpty(), "the router still has the old password")
	s.Expect(api.request()).NotTo(Succeed())

	started = time.Now()
	s.Expect(r.setPassword(after)).To(Succeed())
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(HaveLen(s.q.controlPlanes))
	s.t.Logf("all sessions are established %s after the router has the password", time.Since(started).Round(time.Second))
	s.Eventually(api.request, nodeWithin, probeEvery).Should(Succeed())
	s.t.Logf("the virtual IP responds %s after the router has the password", time.Since(started).Round(time.Second))
	api.finish(s.t)
	s.Expect(s.vipHolder()).NotTo(BeEmpty())
}

// peersWith returns kube-vip's configuration of the router as a BGP peer, with the password.
func peersWith(password string) string {
	return fmt.Sprintf("%s:%d:%s:false", nodesGateway, routerAS, password)
}

// peers returns the BGP peers in the Secret of the DaemonSet's pods.
func (s *realCluster) peers(by client.Client) string {
	s.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "kube-system", Name: kubevip.PeersSecret}
	s.Expect(by.Get(s.t.Context(), key, secret)).To(Succeed())
	return string(secret.Data[kubevip.PeersKey])
}

// refusedFor exceeds the delay before a pod retries its connection to the router.
const refusedFor = 30 * time.Second

// daemonSetPods returns the pods of kube-vip's DaemonSet by name, and whether they are ready. The client must reach an
// API server without the virtual IP.
func (s *realCluster) daemonSetPods(by client.Client) map[string]bool {
	s.t.Helper()
	var all corev1.PodList
	s.Eventually(func() error { return by.List(s.t.Context(), &all, client.InNamespace("kube-system")) }, nodeWithin,
		pollTest).Should(Succeed())
	found := map[string]bool{}
	for _, pod := range all.Items {
		if strings.HasPrefix(pod.Name, "kube-vip-ds-") {
			found[pod.Name] = podReady(&pod)
		}
	}
	return found
}

// withDaemonSet selects the DaemonSet mode of kube-vip in the VCDCluster.
func withDaemonSet(o *unstructured.Unstructured) error {
	if o.GetKind() != "VCDCluster" {
		return nil
	}
	return unstructured.SetNestedField(o.Object, "DaemonSet", "spec", "controlPlaneLoadBalancer", "kubeVIP", "mode")
}

// testHandover waits until no node has a static pod of kube-vip and all nodes have a ready pod of the DaemonSet. During
// the handover, a single node keeps the virtual IP available, but a router needs a new session.
func (s *realCluster) testHandover() {
	s.Eventually(func(g Gomega) {
		static := 0
		daemonSet := 0
		for _, pod := range s.kubeVIPPods() {
			if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
				static++
				continue
			}
			daemonSet++
			g.Expect(podReady(&pod)).To(BeTrue(), pod.Name)
		}
		g.Expect(static).To(BeZero())
		g.Expect(daemonSet).To(Equal(s.q.controlPlanes))
	}, nodeWithin, pollTest).Should(Succeed())
	for _, m := range s.machines(true) {
		s.t.Logf("%s: %s", m.Name, s.inVM(m.Name, "journalctl", "--unit=kube-vip-handover", "--output=cat", "--no-pager"))
	}
	s.Expect(s.vipHolder()).NotTo(BeEmpty())
}

// kubeVIPPods returns the static pods and the DaemonSet pods of kube-vip.
func (s *realCluster) kubeVIPPods() []corev1.Pod {
	s.t.Helper()
	var all corev1.PodList
	s.Eventually(func() error { return s.workload().List(s.t.Context(), &all, client.InNamespace("kube-system")) },
		nodeWithin, pollTest).Should(Succeed())
	var found []corev1.Pod
	for _, pod := range all.Items {
		if strings.HasPrefix(pod.Name, "kube-vip") {
			found = append(found, pod)
		}
	}
	return found
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// testKubeVIPWithoutProxy checks that a pod of the cluster has the proxy variables, and that no pod of kube-vip has
// them.
func (s *realCluster) testKubeVIPWithoutProxy() {
	s.Eventually(func() string {
		s.kubectl("rollout", "restart", "deployment/web") // the policies change only new pods
		s.kubectl("rollout", "status", "deployment/web", "--timeout="+nodeWithin.String())
		return s.kubectl("exec", "deployment/web", "--", "env")
	}, nodeWithin, pollTest).Should(ContainSubstring("HTTPS_PROXY=" + httpProxy))
	s.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-vip-ds")
	s.kubectl("--namespace=kube-system", "rollout", "status", "daemonset/kube-vip-ds", "--timeout="+nodeWithin.String())
	for _, pod := range s.kubeVIPPods() {
		s.Expect(pod.Spec.String()).NotTo(ContainSubstring(httpProxy), pod.Name)
	}
}

// testKubeVIPRestart replaces the pods of kube-vip, and measures how long the API server does not respond.
func (s *realCluster) testKubeVIPRestart() {
	api := s.probe("API server", "/readyz")
	s.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-vip-ds")
	s.Eventually(func() error {
		_, err := s.q.stack.Kubectl(s.t.Context(), strings.NewReader(""), "--kubeconfig="+s.q.kubeconfig(),
			"--namespace=kube-system", "rollout", "status", "daemonset/kube-vip-ds", "--timeout=1m")
		return err
	}, nodeWithin, pollTest).Should(Succeed())
	s.Eventually(api.request, nodeWithin, probeEvery).Should(Succeed())
	api.finish(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", failoverWithin))
}

// testControlPlaneReboot reboots the only control plane machine.
func (s *realCluster) testControlPlaneReboot() {
	name := s.machines(true)[0].Name
	boots := s.boots(name)
	started := time.Now()
	_, _ = s.tryInVM(name, "systemctl", "reboot") // the reboot may close the connection
	s.Eventually(func() int { return s.boots(name) }, nodeWithin, pollTest).Should(Equal(boots + 1))
	s.Eventually(s.vipHolder, nodeWithin, pollTest).Should(Equal(name))
	s.t.Logf("the API server responds at the virtual IP %s after the reboot", time.Since(started).Round(time.Second))
	s.waitUntilReady(2, nodeWithin)
}
