// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// TestKubeVIPByDaemonSetAndProxyOfRealNodes creates a cluster whose pods get the variables of a proxy that nothing can
// reach, and whose virtual IP is held by a DaemonSet.
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

// TestBGPOfRealNodes creates a cluster whose control planes announce the virtual IP to a router, and whose virtual IP is
// in no network of VMs: it is reached through the router alone.
func TestBGPOfRealNodes(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newScene(t, func(o *options) {
		o.controlPlanes = 3
		o.flavor = "bgp"
		o.change = changing(byDaemonSet)
		o.prepare = startRouter(t)
		o.variables = map[string]string{
			"CONTROL_PLANE_ENDPOINT_IP": "10.99.0.10",
			"BGP_AS":                    strconv.Itoa(nodesAS),
			"BGP_INTERFACE":             "ens192",
			"BGP_PEER_ADDRESS":          nodesGateway,
			"BGP_PEER_AS":               strconv.Itoa(routerAS),
		}
	})
	s.run("the DaemonSet has the virtual IP", (*scene).handedOver)
	s.run("it keeps the virtual IP when its pods start again", (*scene).kubeVIPRestarts)
	s.run("another control plane announces it when the holder ended", (*scene).failsOver)
	s.deleted()
}

// byDaemonSet lets a DaemonSet hold the virtual IP.
func byDaemonSet(o *unstructured.Unstructured) error {
	if o.GetKind() != "VCDCluster" {
		return nil
	}
	return unstructured.SetNestedField(o.Object, "DaemonSet", "spec", "endpoint", "kubeVIP", "mode")
}

// handedOver waits until no node has a static pod of kube-vip, and finds the virtual IP answering all the time: on one
// node, it is not away. A router needs a new session.
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

// kubeVIPPods are the pods of kube-vip, of both kinds.
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

// daemonSetWithoutProxy finds the proxy in a pod of the cluster, and in none of kube-vip.
func (s *scene) daemonSetWithoutProxy() {
	s.Eventually(func() string {
		s.kubectl("rollout", "restart", "deployment/web") // only new pods are changed
		s.kubectl("rollout", "status", "deployment/web", "--timeout="+nodeWithin.String())
		return s.kubectl("exec", "deployment/web", "--", "env")
	}, nodeWithin, pollTest).Should(ContainSubstring("HTTPS_PROXY=" + httpProxy))
	s.kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/kube-vip-ds")
	s.kubectl("--namespace=kube-system", "rollout", "status", "daemonset/kube-vip-ds", "--timeout="+nodeWithin.String())
	for _, pod := range s.kubeVIPPods() {
		s.Expect(pod.Spec.String()).NotTo(ContainSubstring(httpProxy), pod.Name)
	}
}

// kubeVIPRestarts replaces the pods of kube-vip, and measures how long the API server does not answer.
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
