// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestRealNodesOfAnotherSite creates a cluster behind a proxy, with an endpoint on the edge gateway. Its nodes have two
// NICs, the first with an address from an IPAM pool.
func TestRealNodesOfAnotherSite(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	s := newRealCluster(t, func(o *options) {
		o.flavor = "proxy"
		o.providers = []stack.Part{stack.IPAM}
		o.change = changeSite
		o.variables = map[string]string{"HTTP_PROXY_URL": httpProxy}
	})
	s.run("the endpoint is on the edge gateway", (*realCluster).testExternalEndpoint)
	s.run("nodes have an address on each NIC", (*realCluster).testTwoAddresses)
	s.run("new pods use the proxy, static pods do not", (*realCluster).testPodProxy)
	s.run("a Service forwards to the host ports of a DaemonSet", (*realCluster).testHostPort)
	s.run("a manual power-off is reported, and reverted if the policy requests it", (*realCluster).testPowerOffPolicy)
	s.deleteCluster()
}

const (
	httpProxy = "http://192.168.100.1:3128" // unused, because all images are present
	ipamPool  = `apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: nodes}
spec: {addresses: [192.168.100.120-192.168.100.139], prefix: 24, gateway: 192.168.100.1}
---
`
)

// changeSite adds an IPAM pool to the manifest of a cluster, and changes its objects.
func changeSite(manifest []byte) ([]byte, error) {
	changed, err := changeEach(changeObject)(manifest)
	return append([]byte(ipamPool), changed...), err
}

// changeEach returns a function that applies change to each object of a manifest.
func changeEach(change func(*unstructured.Unstructured) error) func(manifest []byte) ([]byte, error) {
	return func(manifest []byte) ([]byte, error) {
		out := &bytes.Buffer{}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
		for {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(o); errors.Is(err, io.EOF) {
				return out.Bytes(), nil
			} else if err != nil {
				return nil, err
			}
			if o.Object == nil {
				continue
			}
			if err := change(o); err != nil {
				return nil, err
			}
			document, err := sigsyaml.Marshal(o.Object)
			if err != nil {
				return nil, err
			}
			out.WriteString("---\n")
			out.Write(document)
		}
	}
}

// toEdgeGateway replaces the virtual IP of kube-vip by an endpoint on the edge gateway.
func toEdgeGateway(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "VCDCluster":
		unstructured.RemoveNestedField(o.Object, "spec", "controlPlaneEndpoint")
		return unstructured.SetNestedMap(o.Object, map[string]any{"type": "EdgeGateway"}, "spec", "controlPlaneLoadBalancer")
	case "KubeadmControlPlane":
		return errors.Join(
			without(o, "kube-vip", "spec", "kubeadmConfigSpec", "files"),
			without(o, "kube-vip", "spec", "kubeadmConfigSpec", "preKubeadmCommands"),
			without(o, "kube-vip", "spec", "kubeadmConfigSpec", "postKubeadmCommands"))
	}
	return nil
}

// changeObject gives nodes a second NIC and addresses from an IPAM pool, and the cluster an endpoint on the edge gateway.
func changeObject(o *unstructured.Unstructured) error {
	if o.GetKind() == "VCDMachineTemplate" {
		return unstructured.SetNestedSlice(o.Object, []any{
			map[string]any{
				"addressSource": "IPAM",
				"poolRefs": []any{map[string]any{
					"name":     "nodes",
					"kind":     "InClusterIPPool",
					"apiGroup": "ipam.cluster.x-k8s.io",
				}},
			},
			map[string]any{"name": "storage"},
		}, "spec", "template", "spec", "networks")
	}
	return toEdgeGateway(o)
}

// without removes the items that contain a text from a list.
func without(o *unstructured.Unstructured, text string, path ...string) error {
	items, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(item any) bool { return strings.Contains(fmt.Sprint(item), text) })
	if len(items) == 0 {
		unstructured.RemoveNestedField(o.Object, path...)
		return nil
	}
	return unstructured.SetNestedSlice(o.Object, items, path...)
}

func (s *realCluster) testExternalEndpoint() {
	c := &infrav1.VCDCluster{}
	key := client.ObjectKey{Namespace: clusterNamespace, Name: clusterName}
	s.Expect(s.q.client.Get(s.t.Context(), key, c)).To(Succeed())
	s.Expect(c.Spec.ControlPlaneEndpoint.Host).To(HavePrefix("203.0.113."))
	s.Expect(s.config().Host).To(ContainSubstring(c.Spec.ControlPlaneEndpoint.Host))
	s.Expect(s.kubectl("get", "pods", "--namespace=kube-system", "-o=name")).NotTo(ContainSubstring("kube-vip"))
}

func (s *realCluster) testTwoAddresses() {
	for _, m := range append(s.machines(true), s.machines(false)...) {
		node := s.node(m.Name)
		s.Expect(internalIP(node)).To(MatchRegexp(`^192\.168\.100\.1[23]\d$`), m.Name)
		cards := s.inVM(m.Name, "ip", "-brief", "-4", "address")
		s.Expect(cards).To(ContainSubstring(internalIP(node)+"/24"), m.Name)
		s.Expect(cards).To(ContainSubstring(" 10.20.0."), m.Name)
		s.Expect(s.inVM(m.Name, "ip", "route", "show", "default")).To(ContainSubstring("via 192.168.100.1 "), m.Name)
		s.Expect(strings.Split(s.inVM(m.Name, "ip", "route", "show", "default"), "\n")).To(HaveLen(1), m.Name)
	}
}

func (s *realCluster) testPodProxy() {
	s.Eventually(func() bool {
		c := &infrav1.VCDCluster{}
		key := client.ObjectKey{Namespace: clusterNamespace, Name: clusterName}
		s.Expect(s.q.client.Get(s.t.Context(), key, c)).To(Succeed())
		return meta.IsStatusConditionTrue(c.Status.Conditions, infrav1.PodProxyReadyCondition)
	}, nodeWithin, pollTest).Should(BeTrue())
	s.kubectl("rollout", "restart", "deployment/web") // the policies only change new pods
	s.kubectl("rollout", "status", "deployment/web", "--timeout="+nodeWithin.String())
	s.Expect(s.kubectl("exec", "deployment/web", "--", "env")).To(ContainSubstring("HTTPS_PROXY=" + httpProxy))

	var pods corev1.PodList
	s.Expect(s.workload().List(s.t.Context(), &pods, client.InNamespace("kube-system"))).To(Succeed())
	static := 0
	for _, pod := range pods.Items {
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			static++
			s.Expect(pod.Spec.String()).NotTo(ContainSubstring(httpProxy), "%s is a static pod", pod.Name)
		}
	}
	s.Expect(static).To(BeNumerically(">=", 4))
	for _, m := range s.machines(false) {
		s.Expect(s.inVM(m.Name, "systemctl", "show", "containerd", "--property=Environment")).To(ContainSubstring(httpProxy))
	}
}

// direct is a DaemonSet that clients reach without kube-proxy, like an ingress controller that needs client addresses.
// Its host port equals the node port of the Service.
const direct = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: direct}
spec:
  selector: {matchLabels: {app: direct}}
  template:
    metadata: {labels: {app: direct}}
    spec:
      containers:
        - name: web
          image: "%s"
          command: [sh, -c, "mkdir /tmp/www && hostname >/tmp/www/hostname && httpd -p 8080 -h /tmp/www &&
            trap exit TERM && { sleep infinity & wait; }"]
          ports: [{containerPort: 8080, hostPort: 30777}]
---
apiVersion: v1
kind: Service
metadata: {name: direct}
spec:
  type: LoadBalancer
  ports: [{port: 8081, nodePort: 30777}]
`

// testHostPort checks pods that respond on a host port behind a Service without a selector.
func (s *realCluster) testHostPort() {
	_, err := s.q.stack.Kubectl(s.t.Context(), strings.NewReader(fmt.Sprintf(direct, busybox)),
		"--kubeconfig="+s.q.kubeconfig(), "apply", "-f", "-")
	s.Expect(err).NotTo(HaveOccurred())
	s.kubectl("rollout", "status", "daemonset/direct", "--timeout="+nodeWithin.String())
	s.Eventually(func() error {
		address := s.kubectl("get", "service", "direct", "-o=jsonpath={.status.loadBalancer.ingress[0].ip}")
		return s.q.fetch(s.t.Context(), "http://"+address+":8081/hostname")
	}, nodeWithin, pollTest).Should(Succeed())
	s.kubectl("delete", "service/direct", "daemonset/direct")
}

// reportedWithin is slightly longer than the maximum age of the inventory of VMs for a ready machine.
const reportedWithin = 6 * time.Minute

func (s *realCluster) testPowerOffPolicy() {
	name := s.worker()
	s.powerOff(name)
	noticed := time.Now()
	s.Eventually(func() string {
		s.triggerReconcile(name)
		c := meta.FindStatusCondition(s.vcdMachine(name).Status.Conditions, infrav1.PoweredOnCondition)
		return string(c.Status) + " " + c.Reason
	}, reportedWithin, pollTest).Should(Equal("False " + infrav1.VMPoweredOffReason))
	s.t.Logf("reported %s after it was powered off", time.Since(noticed).Round(time.Second))
	s.Expect(s.vm(name).Status).To(Equal(vcdsim.PoweredOff))

	started := time.Now()
	m := s.vcdMachine(name)
	patch := client.MergeFrom(m.DeepCopy())
	m.Spec.PowerOffPolicy = infrav1.PowerOffPowerOn
	s.Expect(s.q.client.Patch(s.t.Context(), m, patch)).To(Succeed())
	s.Eventually(func() vcdsim.Status { return s.vm(name).Status }, nodeWithin, pollTest).Should(Equal(vcdsim.PoweredOn))
	s.Eventually(func() bool { return ready(s.node(name), started) }, nodeWithin, pollTest).Should(BeTrue())
	s.t.Logf("Ready %s after the policy was set", time.Since(started).Round(time.Second))
	s.waitUntilReady(2, nodeWithin)
	s.Eventually(func() error { return s.q.fetch(s.t.Context(), s.q.website) }, nodeWithin, pollTest).Should(Succeed())
}

// internalIP returns the address of a node.
func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
