// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// clusterLabel is the label of the Nodes and Services of a balancedCluster. Its value is the name of the cluster.
const clusterLabel = "integration.test/cluster"

// uninitialized is the taint that kubelets set on Nodes until a cloud controller manager removes it.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// A balancedCluster is a test cluster with the real cloud controller manager. The shipped program runs with the
// arguments and files that the manager rendered and Cluster API applied. The simulated clusters support neither
// Services nor leases. Therefore, the program uses the API server of the management cluster, where it only sees the
// objects of its cluster.
type balancedCluster struct {
	*guest

	remembered *infrav1.VCDCluster // as read before the deletion of the cluster
	front      *httptest.Server    // the API server that the cloud controller manager uses
	process    *process.Process
}

// buildCCM builds the cloud controller manager once, and returns the path of the binary.
var buildCCM = sync.OnceValues(func() (string, error) {
	path := filepath.Join(shared.Dir(), "bin", "cpi")
	return path, framework.Build(context.Background(), shared.Root, "./cmd/cpi", path)
})

// further is the name of an edge gateway of these clusters, in addition to that of their nodes. Services select it by
// this name.
const further = "dmz"

// withFurtherGateway adds the further gateway to the first VDC, with its own external addresses.
func withFurtherGateway(c *vcdsim.Config) {
	vdc := &c.Model.Orgs[1].VDCs[0]
	gateway := vdc.EdgeGateways[0]
	gateway.Name = further
	gateway.Uplinks = []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Primary: netip.MustParseAddr("203.0.113.200"),
			Addresses: []vcdsim.Range{{
				From: netip.MustParseAddr("203.0.113.200"),
				To:   netip.MustParseAddr("203.0.113.210"),
			}},
		}},
	}}
	vdc.EdgeGateways = append(vdc.EdgeGateways, gateway)
}

// newBalancedCluster creates a cluster with a further gateway. It checks for drift once an hour, so that the requests
// to VCD are predictable.
func newBalancedCluster(t *testing.T, c replica) *balancedCluster {
	t.Helper()
	l := newTestCluster(t, c, 1, withFurtherGateway)
	l.balancer = map[string]any{
		"edgeGateways":         []any{map[string]any{"name": further, "edgeGateway": further}},
		"driftIntervalSeconds": int64(3600),
	}
	l.provision()
	return &balancedCluster{guest: &guest{testCluster: l, workload: l.workloadClient()}}
}

func keyOf(obj client.Object) client.ObjectKey { return client.ObjectKeyFromObject(obj) }

// labeledMeta returns the metadata of an object that is visible to the cloud controller manager.
func (c *balancedCluster) labeledMeta(name string) metav1.ObjectMeta {
	meta := c.meta(name)
	meta.Labels = map[string]string{clusterLabel: c.name}
	return meta
}

// start acts as kubelet: it mounts the volumes of the pod and runs its program. It waits until the Nodes are
// initialized and have their addresses.
func (c *balancedCluster) start() {
	c.t.Helper()
	binary, err := buildCCM()
	c.g.Expect(err).NotTo(HaveOccurred())
	c.waitForCloudProvider("False " + infrav1.CloudProviderUnavailableReason)
	deployment := &appsv1.Deployment{ObjectMeta: inCluster(addons.DeploymentName)}
	c.g.Expect(c.guest.get(deployment)).To(Succeed())
	pod := deployment.Spec.Template.Spec
	root := filepath.Join(shared.Dir(), "ccm-"+c.name)
	c.mount(pod, root)
	kubeconfig := c.serve(root)
	nodes := c.register()
	args := make([]string, 0, len(pod.Containers[0].Args))
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "=/etc/", "="+root+"/etc/"))
	}
	c.process, err = process.Start(process.Spec{
		Name: "ccm-" + c.name,
		Path: binary,
		Dir:  shared.Dir(),
		Env:  append(withoutProxies(), c.environment(pod)...),
		Args: append(args, "--credentials="+filepath.Join(root, "etc/kubernetes/vcloud/basic-auth"),
			"--kubeconfig="+kubeconfig,
			"--leader-elect-resource-namespace="+c.namespace,
			// Nothing restarts the program if it loses the lease, so it must not do so on a busy machine.
			"--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s",
			"--secure-port=0", "--probe-address=",
			"--vcd-task-poll=100ms", "--v=4"),
	})
	c.g.Expect(err).NotTo(HaveOccurred())
	c.t.Cleanup(func() { c.g.Expect(c.process.Kill()).To(Succeed()) })
	for _, node := range nodes {
		c.g.Eventually(func(g Gomega) {
			g.Expect(shared.client.Get(c.t.Context(), keyOf(node), node)).To(Succeed())
			g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", uninitialized)))
			g.Expect(node.Status.Addresses).To(ContainElement(HaveField("Type", corev1.NodeInternalIP)))
		}, timeout, "100ms").Should(Succeed())
	}
	c.markAvailable()
}

// mount writes the volumes of a pod below root.
func (c *balancedCluster) mount(pod corev1.PodSpec, root string) {
	c.t.Helper()
	files := map[string]map[string][]byte{}
	for _, v := range pod.Volumes {
		files[v.Name] = map[string][]byte{}
		switch {
		case v.ConfigMap != nil:
			m := &corev1.ConfigMap{ObjectMeta: inCluster(v.ConfigMap.Name)}
			c.g.Expect(c.guest.get(m)).To(Succeed())
			for key, value := range m.Data {
				files[v.Name][key] = []byte(value)
			}
		case v.Secret != nil:
			s := &corev1.Secret{ObjectMeta: inCluster(v.Secret.SecretName)}
			c.g.Expect(c.guest.get(s)).To(Succeed())
			maps.Copy(files[v.Name], s.Data)
		}
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		dir := filepath.Join(root, m.MountPath)
		c.g.Expect(os.MkdirAll(dir, 0o750)).To(Succeed())
		for name, content := range files[m.Name] {
			c.g.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
		}
	}
}

// environment returns the environment variables of a pod.
func (c *balancedCluster) environment(pod corev1.PodSpec) []string {
	c.t.Helper()
	var out []string
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom == nil { // The address of the API server, which is in the kubeconfig instead.
			continue
		}
		ref := e.ValueFrom.SecretKeyRef
		if ref == nil { // The name and UID of the pod.
			out = append(out, e.Name+"="+c.name)
			continue
		}
		s := &corev1.Secret{ObjectMeta: inCluster(ref.Name)}
		c.g.Expect(c.guest.get(s)).To(Succeed())
		out = append(out, e.Name+"="+string(s.Data[ref.Key]))
	}
	return out
}

func withoutProxies() []string {
	return slices.DeleteFunc(os.Environ(),
		func(e string) bool { return strings.Contains(strings.ToUpper(e), "_PROXY=") })
}

// serve starts a proxy to the API server that only shows the Nodes and Services of the cluster. It returns the path of
// a kubeconfig for the proxy.
func (c *balancedCluster) serve(dir string) string {
	c.t.Helper()
	target, err := url.Parse(shared.RESTConfig().Host)
	c.g.Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(shared.RESTConfig())
	c.g.Expect(err).NotTo(HaveOccurred())
	c.front = httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if path := r.Out.URL.Path; r.Out.Method == http.MethodGet &&
				(path == "/api/v1/services" || path == "/api/v1/nodes") {
				query := r.Out.URL.Query()
				query.Set("labelSelector", clusterLabel+"="+c.name)
				r.Out.URL.RawQuery = query.Encode()
			}
		},
		FlushInterval: -1, // Watches are streams.
		Transport:     transport,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	c.t.Cleanup(c.closeFront)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   c.front.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.front.Certificate().Raw}),
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(dir, "kubeconfig")
	c.g.Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

func (c *balancedCluster) closeFront() {
	c.front.CloseClientConnections()
	c.front.Close()
}

// stopAPIServer stops the API server that the cloud controller manager sees, as the removal of the last control plane
// machine does, and waits until the program exits.
func (c *balancedCluster) stopAPIServer() {
	c.t.Helper()
	c.closeFront()
	c.g.Eventually(c.process.Done(), timeout, "100ms").Should(BeClosed(), "the program exits when it loses its lease")
}

// register copies the Nodes of the workload cluster to the management cluster, with the taint that kubelets set for the
// cloud controller manager.
func (c *balancedCluster) register() []*corev1.Node {
	c.t.Helper()
	list := &corev1.NodeList{}
	c.g.Expect(c.workload.List(c.t.Context(), list)).To(Succeed())
	var nodes []*corev1.Node
	for i := range list.Items {
		known := &list.Items[i]
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: known.Name, Labels: maps.Clone(known.Labels)},
			Spec: corev1.NodeSpec{
				ProviderID: known.Spec.ProviderID,
				Taints: []corev1.Taint{
					{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule},
				},
			},
		}
		metav1.SetMetaDataLabel(&node.ObjectMeta, clusterLabel, c.name)
		c.g.Expect(shared.client.Create(c.t.Context(), node)).To(Succeed())
		c.t.Cleanup(func() {
			c.g.Expect(shared.client.Delete(context.WithoutCancel(c.t.Context()),
				node)).To(Succeed())
		})
		node.Status.Conditions = []corev1.NodeCondition{{
			Type:   corev1.NodeReady,
			Status: corev1.ConditionTrue,
			Reason: "KubeletReady",
		}}
		c.g.Expect(shared.client.Status().Update(c.t.Context(), node)).To(Succeed())
		nodes = append(nodes, node)
	}
	return nodes
}
