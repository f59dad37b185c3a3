// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func ready(nodes []corev1.Node) map[string]corev1.ConditionStatus {
	out := map[string]corev1.ConditionStatus{}
	for _, n := range nodes {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				out[n.Name] = c.Status
			}
		}
	}
	return out
}

func TestClusterIsBootstrappedFromGuestinfo(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	w := start(t, workload.Options{})
	b := newFixture(t)
	worker := b.vm("demo-md-0", 2, b.workerData())

	_, err := w.PowerOn(ctx, worker)
	g.Expect(err).NotTo(HaveOccurred())
	waiting, _ := w.Machine(worker.ID)
	g.Expect(waiting.Phase).To(Equal(workload.PhaseBootstrapping))
	g.Expect(waiting.Message).To(ContainSubstring("waiting for a control plane at 192.168.100.200:6443"))

	first := b.vm("demo-cp-0", 1, b.initData())
	report, err := w.PowerOn(ctx, first)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Hostname).To(Equal("demo-cp-0"))
	g.Expect(report.Addresses).To(Equal(map[string]string{"00:50:56:01:00:01": "192.168.100.11"}))
	g.Expect(report.ExtraConfig).To(HaveKeyWithValue("guestinfo.userdata", "---"))
	g.Expect(report.ExtraConfig).To(HaveKeyWithValue("guestinfo.local-ipv4", "192.168.100.11"))

	set := clients(g, w)
	g.Eventually(func() string {
		m,
			_ := w.Machine(worker.ID)
		return m.Message
	}).Should(ContainSubstring("bootstrap token abcdef"))
	addToken(ctx, g, set)
	g.Eventually(func() workload.Phase {
		m,
			_ := w.Machine(worker.ID)
		return m.Phase
	}).Should(Equal(workload.PhaseRunning))
	_, err = w.PowerOn(ctx, b.vm("demo-cp-1", 3, b.controlPlaneData()))
	g.Expect(err).NotTo(HaveOccurred())

	nodes, err := set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ready(nodes.Items)).To(Equal(map[string]corev1.ConditionStatus{
		"demo-cp-0": "True",
		"demo-cp-1": "True",
		"demo-md-0": "True",
	}))
	node, err := set.CoreV1().Nodes().Get(ctx, "demo-cp-0", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node.Spec.ProviderID).To(Equal("vmware-cloud-director://urn:vcloud:vm:" + first.ID))
	g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal(version))
	g.Expect(node.Status.Addresses).To(ContainElement(corev1.NodeAddress{
		Type:    corev1.NodeInternalIP,
		Address: "192.168.100.11",
	}))
	g.Expect(node.Labels).To(HaveKeyWithValue("team", "blue"))
	g.Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/control-plane"))
	g.Expect(node.Spec.Taints).To(HaveLen(1))
	pods, err := set.CoreV1().Pods("kube-system").List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=demo-cp-0"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Items).To(HaveLen(5))
	config, err := set.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Data["ClusterConfiguration"]).To(ContainSubstring("kubernetesVersion: v1.36.3"))
}

func TestKubeVIPAnnouncesAnAddressOfEachFamily(t *testing.T) {
	g := NewWithT(t)
	w := start(t, workload.Options{})
	b := newFixture(t)
	b.secondVIP = []string{"fd00:100::f:1"}
	first := b.vm("demo-cp-0", 1, b.initData())

	_, err := w.PowerOn(t.Context(), first)

	g.Expect(err).NotTo(HaveOccurred())
	m, _ := w.Machine(first.ID)
	g.Expect(m.Phase).To(Equal(workload.PhaseRunning), m.Message)
}

func TestPower(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	w := start(t, workload.Options{NotReadyAfter: 50 * time.Millisecond})
	b := newFixture(t)
	cp := b.vm("cp", 1, b.initData())
	worker := b.vm("md", 2, b.workerData())
	cpReport, err := w.PowerOn(ctx, cp)
	g.Expect(err).NotTo(HaveOccurred())
	set := clients(g, w)
	addToken(ctx, g, set)
	report, err := w.PowerOn(ctx, worker)
	g.Expect(err).NotTo(HaveOccurred())
	status := func() (map[string]corev1.ConditionStatus, error) {
		nodes, err := w.Nodes("demo")
		return ready(nodes), err
	}

	w.PowerOff(ctx, worker.ID)
	g.Eventually(status).Should(HaveKeyWithValue("md", corev1.ConditionUnknown))
	_, err = w.PowerOn(ctx, reboot(worker, report))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status()).To(HaveKeyWithValue("md", corev1.ConditionTrue))

	w.PowerOff(ctx, cp.ID)
	_, err = set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("Service Unavailable")))
	_, err = w.PowerOn(ctx, reboot(cp, cpReport))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})).NotTo(BeNil())

	w.Delete(ctx, worker.ID)
	g.Eventually(status).Should(HaveKeyWithValue("md", corev1.ConditionUnknown))
	g.Expect(set.CoreV1().Nodes().Delete(ctx, "md", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(status()).To(HaveLen(1))
	w.Delete(ctx, cp.ID)
	g.Expect(w.Clusters()).To(BeEmpty())
	g.Expect(w.Machines()).To(BeEmpty())
}

func TestGuestsThatFailToBootstrap(t *testing.T) {
	tests := []struct {
		name string
		vm   func(b *fixture) vcdsim.GuestVM
		want string
	}{
		{
			name: "a template with another Kubernetes version",
			vm: func(b *fixture) vcdsim.GuestVM {
				vm := b.vm("bad", 5, b.initData())
				vm.KubernetesVersion = "v1.35.0"
				return vm
			},
			want: "requires Kubernetes v1.36.3 but the template contains v1.35.0",
		},
		{
			name: "kube-vip for another address",
			vm: func(b *fixture) vcdsim.GuestVM {
				data := strings.Replace(string(b.initData()), "controlPlaneEndpoint: 192.168.100.200",
					"controlPlaneEndpoint: 192.168.100.201", 1)
				return b.vm("bad", 5, []byte(data))
			},
			want: `kube-vip's address "192.168.100.200" is not the control plane endpoint 192.168.100.201`,
		},
		{
			name: "kube-vip without super-admin.conf on the first node",
			vm: func(b *fixture) vcdsim.GuestVM {
				data := strings.Replace(string(b.initData()), `- "/etc/kube-vip/prepare.sh"`, `- "true"`, 1)
				data = strings.Replace(data, `- "/etc/kube-vip/cleanup.sh"`, `- "true"`, 1)
				return b.vm("bad", 5, []byte(data))
			},
			want: "no command changes it to super-admin.conf",
		},
		{
			name: "a first control plane at an endpoint that is in use",
			vm:   func(b *fixture) vcdsim.GuestVM { return b.vm("bad", 5, b.initData()) },
			want: "is already in use by cluster demo",
		},
		{
			name: "a joining node with the CA hash of another cluster",
			vm: func(b *fixture) vcdsim.GuestVM {
				b.caHashes = newFixture(b.t).caHashes
				return b.vm("bad", 5, b.workerData())
			},
			want: "which caCertHashes does not pin",
		},
		{
			name: "a joining control plane with the CA of another cluster",
			vm: func(b *fixture) vcdsim.GuestVM {
				other := newFixture(b.t)
				other.caHashes = b.caHashes
				return b.vm("bad", 5, other.controlPlaneData())
			},
			want: "are not those of the cluster",
		},
		{
			name: "a joining node with a wrong token secret",
			vm: func(b *fixture) vcdsim.GuestVM {
				return b.vm("bad", 5, []byte(strings.ReplaceAll(string(b.workerData()), token, "abcdef.xxxxxxxxxxxxxxxx")))
			},
			want: "has another secret",
		},
		{
			name: "a node name that is in use",
			vm:   func(b *fixture) vcdsim.GuestVM { return b.vm("cp", 5, b.workerData()) },
			want: "a node called cp exists already",
		},
		{
			name: "an address that VCD did not assign",
			vm: func(b *fixture) vcdsim.GuestVM {
				vm := b.vm("bad", 5, b.workerData())
				vm.NICs[0].Address = netip.MustParseAddr("192.168.100.77")
				return vm
			},
			want: "VCD assigned 192.168.100.77/24",
		},
	}
	w := start(t, workload.Options{})
	b := newFixture(t)
	_, err := w.PowerOn(t.Context(), b.vm("cp", 1, b.initData()))
	if err != nil {
		t.Fatal(err)
	}
	addToken(t.Context(), NewWithT(t), clients(NewWithT(t), w))
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			own := *b
			vm := tc.vm(&own)

			_, err := w.PowerOn(t.Context(), vm)

			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			m, _ := w.Machine(vm.ID)
			g.Expect(m.Message).To(ContainSubstring(tc.want))
			w.Delete(t.Context(), vm.ID)
		})
	}
}

// TestClusterIsBootstrappedWithIgnition boots guests with the name, the address and the provider ID from Ignition.
func TestClusterIsBootstrappedWithIgnition(t *testing.T) {
	g := NewWithT(t)
	w := start(t, workload.Options{})
	b := newFixture(t)
	b.format = guestinfo.FormatIgnition
	_, err := w.PowerOn(t.Context(), b.vm("cp", 1, b.initData()))
	g.Expect(err).NotTo(HaveOccurred())
	addToken(t.Context(), g, clients(g, w))

	report, err := w.PowerOn(t.Context(), b.vm("md", 2, b.ignitionWorkerData()))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.ExtraConfig).To(HaveKeyWithValue("guestinfo.ignition.config.data", "e30K"))
	g.Expect(report.Hostname).To(Equal("md"))
	g.Expect(report.Addresses).To(ConsistOf("192.168.100.12"))
	nodes, err := w.Nodes(vip + ":6443")
	g.Expect(err).NotTo(HaveOccurred())
	for name, number := range map[string]string{"cp": "1", "md": "2"} {
		g.Expect(ready(nodes)).To(HaveKeyWithValue(name, corev1.ConditionTrue))
		g.Expect(nodes).To(ContainElement(And(HaveField("Name", name), HaveField("Spec.ProviderID",
			"vmware-cloud-director://urn:vcloud:vm:00000000-0000-0000-0000-00000000000"+number))))
	}
}

// TestIgnitionWithoutMetadataIsAnError boots a guest whose commands do not write the metadata to the kubeadm
// configuration.
func TestIgnitionWithoutMetadataIsAnError(t *testing.T) {
	g := NewWithT(t)
	w := start(t, workload.Options{})
	b := newFixture(t)
	b.format = guestinfo.FormatIgnition
	data := bytes.ReplaceAll(b.initData(), []byte("metadata.env"), []byte("other.env"))

	_, err := w.PowerOn(t.Context(), b.vm("cp", 1, data))

	g.Expect(err).To(MatchError(ContainSubstring("/etc/vcd/other.env, which a command reads before, is not written")))
}

func TestJoinTimesOutWithoutACluster(t *testing.T) {
	g := NewWithT(t)
	w := start(t, workload.Options{JoinTimeout: 10 * time.Millisecond, RetryEvery: time.Millisecond})
	b := newFixture(t)
	vm := b.vm("md", 2, b.workerData())

	_, err := w.PowerOn(t.Context(), vm)

	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() workload.Phase { m, _ := w.Machine(vm.ID); return m.Phase }).Should(Equal(workload.PhaseFailed))
	m, _ := w.Machine(vm.ID)
	g.Expect(m.Message).To(HavePrefix("timed out: kubeadm join: waiting for a control plane"))
}

func TestClientsNeedACertificateOfTheCluster(t *testing.T) {
	g := NewWithT(t)
	w := start(t, workload.Options{})
	b := newFixture(t)
	_, err := w.PowerOn(t.Context(), b.vm("cp", 1, b.initData()))
	g.Expect(err).NotTo(HaveOccurred())

	status := get(t.Context(), g, w, "https://"+vip+":6443/api/v1/nodes")

	g.Expect(status).To(Equal(http.StatusUnauthorized))
}

func get(ctx context.Context, g Gomega, w *workload.Workloads, target string) (status int) {
	proxy, err := url.Parse(w.ProxyURL())
	g.Expect(err).NotTo(HaveOccurred())
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}
