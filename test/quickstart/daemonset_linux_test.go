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

// TestKubeVIPByDaemonSetAndProxyOfRealNodes creates a cluster whose pods get the variables of an unreachable proxy, and
// whose virtual IP is held by a DaemonSet.
func TestKubeVIPByDaemonSetAndProxyOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newScene(t, func(o *options) {
		o.flavor = "proxy"
		o.change = changing(byDaemonSet)
		o.variables = map[string]string{"HTTP_PROXY_URL": httpProxy}
	})
	s.run("the DaemonSet has the virtual IP", (*scene).handedOver)
	s.run("it has no proxy", (*scene).daemonSetWithoutProxy)
	s.run("it keeps the virtual IP when its pods start again", (*scene).kubeVIPRestarts)
	s.run("it keeps the virtual IP when its node reboots", (*scene).controlPlaneReboots)
	s.deleted()
}

// TestBGPOfRealNodes creates a cluster whose control planes announce the virtual IP to a router, with a password. The
// virtual IP is in no network of VMs, so that it is reachable only through the router.
func TestBGPOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	r := &router{password: "before"}
	s := newScene(t, func(o *options) {
		o.controlPlanes = 3
		o.flavor = "bgp"
		o.change = changing(byDaemonSet)
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
	s.run("the DaemonSet has the virtual IP", (*scene).handedOver)
	s.run("its pods get another password, without which the router refuses them", r.changesPassword)
	s.run("it keeps the virtual IP when its pods start again", (*scene).kubeVIPRestarts)
	s.run("another control plane announces it when the holder ended", (*scene).failsOver)
	s.deleted()
}

// changesPassword changes the password in the Secret and then on the router, as users do. While the router has the
// former password, it has no session with pods that have the new one, and the virtual IP is unreachable.
func (r *router) changesPassword(s *scene) {
	const after = "after-$(X)" // kubelet would expand $(X)
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(HaveLen(s.q.controlPlanes))
	node := s.machines(true)[0].Name
	direct := s.workloadBy(s.vm(node).NICs[0].Address)
	old := s.daemonSetPods(direct)
	s.Expect(old).To(HaveLen(s.q.controlPlanes))
	s.Expect(s.peers(direct)).To(Equal(peersWith(r.password)))
	api := s.probe("API server", "/readyz")
	began := time.Now()

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
	s.t.Logf("all pods have the new password %s after it was stored", time.Since(began).Round(time.Second))
	s.Expect(s.peers(direct)).To(Equal(peersWith(after)))
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(BeEmpty())
	s.Consistently(r.sessions, refusedFor, pollTest).Should(BeEmpty(), "the router has the former password")
	s.Expect(api.ask()).NotTo(Succeed())

	began = time.Now()
	s.Expect(r.setPassword(after)).To(Succeed())
	s.Eventually(r.sessions, nodeWithin, pollTest).Should(HaveLen(s.q.controlPlanes))
	s.t.Logf("all sessions are back %s after the router has the password", time.Since(began).Round(time.Second))
	s.Eventually(api.ask, nodeWithin, probeEvery).Should(Succeed())
	s.t.Logf("the virtual IP answers %s after the router has the password", time.Since(began).Round(time.Second))
	api.end(s.t)
	s.Expect(s.holder()).NotTo(BeEmpty())
}

// peersWith returns the configuration of the router as a peer of kube-vip, with a password.
func peersWith(password string) string {
	return fmt.Sprintf("%s:%d:%s:false", nodesGateway, routerAS, password)
}

// peers returns the BGP peers in the configuration of the DaemonSet's pods.
func (s *scene) peers(by client.Client) string {
	s.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "kube-system", Name: kubevip.PeersSecret}
	s.Expect(by.Get(s.t.Context(), key, secret)).To(Succeed())
	return string(secret.Data[kubevip.PeersKey])
}

// refusedFor is longer than a pod waits before it tries to connect to the router again.
const refusedFor = 30 * time.Second

// daemonSetPods returns the pods of kube-vip's DaemonSet by name, and whether they are ready. It reads them from an API
// server that is reachable without the virtual IP.
func (s *scene) daemonSetPods(by client.Client) map[string]bool {
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

// byDaemonSet makes a DaemonSet hold the virtual IP.
func byDaemonSet(o *unstructured.Unstructured) error {
	if o.GetKind() != "VCDCluster" {
		return nil
	}
	return unstructured.SetNestedField(o.Object, "DaemonSet", "spec", "controlPlaneLoadBalancer", "kubeVIP", "mode")
}

// handedOver waits until no node has a static pod of kube-vip, and checks that the virtual IP responds all the time.
// With a single node, it is never unavailable, but a router needs a new session.
func (s *scene) handedOver() {
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
	s.Expect(s.holder()).NotTo(BeEmpty())
}

// kubeVIPPods returns the pods of kube-vip, of both kinds.
func (s *scene) kubeVIPPods() []corev1.Pod {
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

// daemonSetWithoutProxy checks that a pod of the cluster has the proxy, and that no pod of kube-vip has it.
func (s *scene) daemonSetWithoutProxy() {
	s.Eventually(func() string {
		s.kubectl("rollout", "restart", "deployment/web") // the policies only change new pods
		s.kubectl("rollout", "status", "deployment/web", "--timeout="+nodeWithin.String())
		return s.kubectl("exec", "deployment/web", "--", "env")
	}, nodeWithin, pollTest).Should(ContainSubstring("HTTPS_PROXY=" + httpProxy))
	s.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-vip-ds")
	s.kubectl("--namespace=kube-system", "rollout", "status", "daemonset/kube-vip-ds", "--timeout="+nodeWithin.String())
	for _, pod := range s.kubeVIPPods() {
		s.Expect(pod.Spec.String()).NotTo(ContainSubstring(httpProxy), pod.Name)
	}
}

// kubeVIPRestarts replaces the pods of kube-vip, and measures how long the API server does not respond.
func (s *scene) kubeVIPRestarts() {
	api := s.probe("API server", "/readyz")
	s.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-vip-ds")
	s.Eventually(func() error {
		_, err := s.q.stack.Kubectl(s.t.Context(), strings.NewReader(""), "--kubeconfig="+s.q.kubeconfig(),
			"--namespace=kube-system", "rollout", "status", "daemonset/kube-vip-ds", "--timeout=1m")
		return err
	}, nodeWithin, pollTest).Should(Succeed())
	s.Eventually(api.ask, nodeWithin, probeEvery).Should(Succeed())
	api.end(s.t)
	s.Expect(api.gap).To(BeNumerically("<=", failoverWithin))
}

// controlPlaneReboots reboots the only control plane.
func (s *scene) controlPlaneReboots() {
	name := s.machines(true)[0].Name
	boots := s.boots(name)
	began := time.Now()
	_, _ = s.tryInVM(name, "systemctl", "reboot") // the connection may end first
	s.Eventually(func() int { return s.boots(name) }, nodeWithin, pollTest).Should(Equal(boots + 1))
	s.Eventually(s.holder, nodeWithin, pollTest).Should(Equal(name))
	s.t.Logf("the API server answers at the virtual IP %s after the reboot", time.Since(began).Round(time.Second))
	s.settled(2, nodeWithin)
}
