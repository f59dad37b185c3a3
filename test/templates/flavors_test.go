// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	timeout   = 8 * time.Minute // for a complete cluster
	namespace = "default"
)

// pools are the IPAM pools of the clusters with flavors ipam and dual-stack.
const pools = `
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: nodes, namespace: default}
spec: {addresses: [192.168.100.100-192.168.100.119], prefix: 24, gateway: 192.168.100.1}
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: nodes-v6, namespace: default}
spec: {addresses: ["fd00:100::1:0-fd00:100::1:1f"], prefix: 64, gateway: "fd00:100::1"}
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: virtual-ips, namespace: default}
spec: {addresses: [192.168.100.230-192.168.100.231], prefix: 24, gateway: 192.168.100.1}
`

// A flavoredCluster is a cluster of one flavor. The clusters of all flavors share a simulated site.
type flavoredCluster struct {
	flavor               string
	endpoint             string // CONTROL_PLANE_ENDPOINT_IP; empty if the user sets none
	controlPlanes, nodes int
	networks             string // spec.networks of its machines, in YAML; empty for the network of the cluster
	cni                  string // CNI; empty if the user sets none
	check                func(*environment, flavoredCluster)
}

// twoNICs are two networks: the first NIC gets an address from an IPAM pool in the nodes' network, the second one an
// address from the static pool of another network.
const twoNICs = `
      networks:
        - addressSource: IPAM
          poolRefs:
            - {name: nodes, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}
        - name: storage
          routes:
            - {to: 10.99.0.0/16, via: 10.20.0.1}`

func flavoredClusters() []flavoredCluster {
	return []flavoredCluster{
		{"ipam", "", 3, 4, "", "cilium", (*environment).checkPools},
		{"edge-gateway", "", 3, 4, "", "calico", (*environment).checkEdgeGateway},
		{"dual-stack", "192.168.100.220", 1, 2, "", "cilium-dual-stack", (*environment).checkDualStack},
		{"bgp", "10.99.0.10", 1, 2, "", "none", (*environment).checkBGP},
		{"flatcar", "192.168.100.221", 1, 2, twoNICs, "", (*environment).checkIgnition},
	}
}

// withoutNetworks is the last line of a machine's spec in the templates.
const withoutNetworks = "diskSize: ${DISK_SIZE:=null}"

// An environment is a simulated site with a management cluster.
type environment struct {
	*WithT

	t      *testing.T
	site   *simsite.Site
	w      *framework.ManagementCluster
	client client.Client
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	s := &environment{WithT: NewWithT(t), t: t}
	dir, err := os.MkdirTemp("", "flavors-") //nolint:usetesting // Logs outlive a test that fails.
	s.Expect(err).NotTo(HaveOccurred())
	s.site, err = simsite.Start(t.Context(), dir, vcdsim.CloudProvider())
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		s.Expect(s.site.Close()).To(Succeed())
		if t.Failed() {
			t.Log("Logs are kept in", dir)
			return
		}
		s.Expect(os.RemoveAll(dir)).To(Succeed())
	})
	s.w, err = s.site.NewManagementCluster(t.Context(), framework.Options{
		Dir:                 "management",
		Out:                 t.Output(),
		StorageVersionsOnly: true,
	})
	s.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme,
	} {
		s.Expect(add(scheme)).To(Succeed())
	}
	s.client, err = client.New(s.w.RESTConfig(), client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	return s
}

// TestFlavorsBecomeAvailable creates a cluster of each flavor with special endpoints, addresses or bootstrap data. It
// waits until the clusters are available, checks the features of their flavors, and deletes the clusters.
func TestFlavorsBecomeAvailable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a management cluster; left out by -short")
	}
	s := newEnvironment(t)
	s.apply([]byte(pools))
	s.createNetworkPlugins()
	for _, c := range flavoredClusters() {
		s.create(c)
	}

	for _, c := range flavoredClusters() {
		s.available(c)
		s.hasNetworkPlugin(c)
		c.check(s, c)
	}

	for _, c := range flavoredClusters() {
		s.Expect(s.client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: meta(c.flavor)})).To(Succeed())
	}
	s.waitUntilAllGone()
}

func (s *environment) apply(manifests []byte) {
	s.t.Helper()
	out, err := s.w.Kubectl(s.t.Context(), bytes.NewReader(manifests), "apply", "-f", "-")
	s.Expect(err).NotTo(HaveOccurred(), string(out))
}

// create creates a cluster as a user does, with clusterctl generate cluster and kubectl apply.
func (s *environment) create(c flavoredCluster) {
	s.t.Helper()
	files, err := simsite.ReleaseFiles(s.w.Root, s.w.Components, filepath.Join("templates", "*.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	name := "cluster-template-" + c.flavor + ".yaml"
	files[name] = bytes.ReplaceAll(files[name], []byte(withoutNetworks), []byte(withoutNetworks+c.networks))
	variables := maps.Clone(required)
	delete(variables, "CONTROL_PLANE_ENDPOINT_IP")
	if c.endpoint != "" {
		variables["CONTROL_PLANE_ENDPOINT_IP"] = c.endpoint
	}
	if c.cni != "" {
		variables["CNI"] = c.cni
	}
	maps.Copy(variables, s.site.Variables())
	s.Expect(s.w.LocalRepository(stack.Repository{
		Version:   framework.Version,
		Files:     files,
		Variables: variables,
	})).To(Succeed())
	manifests, err := s.w.Clusterctl(s.t.Context(), "generate", "cluster", c.flavor, "--infrastructure=vcd",
		"--flavor="+c.flavor, "--target-namespace="+namespace, "--kubernetes-version="+programs.KubernetesVersion,
		fmt.Sprintf("--control-plane-machine-count=%d", c.controlPlanes),
		fmt.Sprintf("--worker-machine-count=%d", c.nodes-c.controlPlanes))
	s.Expect(err).NotTo(HaveOccurred())
	s.apply(manifests)
}

func (s *environment) available(c flavoredCluster) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{ObjectMeta: meta(c.flavor)}
		g.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		g.Expect(conditions.IsTrue(cluster, clusterv1.AvailableCondition)).To(BeTrue(), "%v", cluster.Status.Conditions)
		infra := s.vcdCluster(g, c)
		g.Expect(conditions.IsTrue(infra, clusterv1.ReadyCondition)).To(BeTrue(), "%v", infra.Status.Conditions)
		machines := s.machines(g, c)
		g.Expect(machines).To(HaveLen(c.nodes))
		for i := range machines {
			g.Expect(conditions.IsTrue(&machines[i], clusterv1.ReadyCondition)).To(BeTrue(), "%s: %v",
				machines[i].Name, machines[i].Status.Conditions)
		}
	}, timeout, "250ms").Should(Succeed(), "flavor %s", c.flavor)
}

func (s *environment) vcdCluster(g Gomega, c flavoredCluster) *infrav1.VCDCluster {
	infra := &infrav1.VCDCluster{ObjectMeta: meta(c.flavor)}
	g.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
	return infra
}

func (s *environment) machines(g Gomega, c flavoredCluster) []infrav1.VCDMachine {
	list := &infrav1.VCDMachineList{}
	g.Expect(s.client.List(s.t.Context(), list, client.InNamespace(namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: c.flavor})).To(Succeed())
	return list.Items
}

// addressesOf returns the addresses of a machine by family, IPv4 first.
func addressesOf(m infrav1.VCDMachine) (v4, v6 []netip.Addr) {
	for _, a := range m.Status.Addresses {
		switch addr, err := netip.ParseAddr(a.Address); {
		case err != nil:
		case addr.Is4():
			v4 = append(v4, addr)
		default:
			v6 = append(v6, addr)
		}
	}
	return v4, v6
}

// checkPools checks that each node and the virtual IP have different addresses of pools.
func (s *environment) checkPools(c flavoredCluster) {
	s.t.Helper()
	s.Expect(s.vcdCluster(s, c).Spec.ControlPlaneEndpoint.Host).To(MatchRegexp(`^192\.168\.100\.23[01]$`))
	seen := map[netip.Addr]string{}
	for _, m := range s.machines(s, c) {
		v4, v6 := addressesOf(m)
		s.Expect(v4).To(HaveLen(1))
		s.Expect(v6).To(BeEmpty())
		s.Expect(v4[0].String()).To(MatchRegexp(`^192\.168\.100\.1[01][0-9]$`))
		s.Expect(seen).NotTo(HaveKey(v4[0]), "%s has the same address", seen[v4[0]])
		seen[v4[0]] = m.Name
	}
}

// checkEdgeGateway checks that only the control planes are members of the pool.
func (s *environment) checkEdgeGateway(c flavoredCluster) {
	s.t.Helper()
	pools := 0
	for _, d := range s.site.Simulator.State().Documents {
		if !strings.HasSuffix(d.Path, "loadBalancer/pools") {
			continue
		}
		pools++
		for _, m := range s.machines(s, c) {
			v4, _ := addressesOf(m)
			_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
			member := strings.Contains(string(d.Body), `"`+v4[0].String()+`"`)
			s.Expect(member).To(Equal(controlPlane), "membership of %s in %s", m.Name, d.Body)
		}
	}
	s.Expect(pools).To(Equal(1))
}

// checkDualStack checks that nodes have an address of each family, and that kube-vip announces both addresses of the
// endpoint.
func (s *environment) checkDualStack(c flavoredCluster) {
	s.t.Helper()
	for _, m := range s.machines(s, c) {
		v4, v6 := addressesOf(m)
		s.Expect(v4).To(HaveLen(1))
		s.Expect(v6).To(HaveLen(1))
		s.Expect(v6[0].String()).To(HavePrefix("fd00:100::1:"))
	}
	s.Expect(s.kubeVIP(c)).To(And(ContainSubstring(c.endpoint), ContainSubstring(required["CONTROL_PLANE_ENDPOINT_IPV6"])))
}

// checkIgnition checks that each guest got its configuration from Ignition, which then removed it from the VM, and that
// the Node has the name, the addresses and the provider ID of its machine.
func (s *environment) checkIgnition(c flavoredCluster) {
	s.t.Helper()
	vms := map[string]vcdsim.VM{}
	for _, vm := range s.site.Simulator.State().VMs {
		vms[vm.Name] = vm
	}
	for _, m := range s.machines(s, c) {
		v4, _ := addressesOf(m)
		s.Expect(v4).To(ConsistOf(
			HaveField("String()", MatchRegexp(`^192\.168\.100\.1[01][0-9]$`)), HaveField("String()", HavePrefix("10.20.0."))))
		s.Expect(vms).To(HaveKey(m.Name))
		s.Expect(vms[m.Name].ExtraConfig).To(And(HaveKeyWithValue("guestinfo.ignition.config.data", "e30K"),
			Not(HaveKey("guestinfo.userdata"))))
	}
	// Cluster API finds the Node of a Machine by its provider ID.
	for _, m := range s.machines(s, c) {
		machine := &clusterv1.Machine{ObjectMeta: meta(m.Name)}
		s.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		s.Expect(machine.Status.NodeRef.Name).To(Equal(m.Name))
	}
}

// checkBGP checks that kube-vip announces with BGP, to the router.
func (s *environment) checkBGP(c flavoredCluster) {
	s.t.Helper()
	s.Expect(s.kubeVIP(c)).To(And(ContainSubstring("bgp_enable"), ContainSubstring(required["BGP_PEER_ADDRESS"])))
}

func (s *environment) kubeVIP(c flavoredCluster) string {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: meta(c.flavor + "-kube-vip")}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	return string(secret.Data["kube-vip.yaml"])
}

// waitUntilAllGone waits until all clusters and their addresses are gone from the API server, and checks that VCD
// contains no orphaned resources.
func (s *environment) waitUntilAllGone() {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		clusters := &clusterv1.ClusterList{}
		claims := &ipamv1.IPAddressClaimList{}
		addresses := &ipamv1.IPAddressList{}
		for _, list := range []client.ObjectList{clusters, claims, addresses} {
			g.Expect(s.client.List(s.t.Context(), list)).To(Succeed())
		}
		g.Expect(clusters.Items).To(BeEmpty())
		g.Expect(claims.Items).To(BeEmpty())
		g.Expect(addresses.Items).To(BeEmpty())
	}, timeout, "250ms").Should(Succeed())
	s.Expect(s.site.Left()).To(BeEmpty())
	for _, d := range s.site.Simulator.State().Documents {
		s.Expect(d.Path).NotTo(Or(HaveSuffix("loadBalancer/pools"), HaveSuffix("loadBalancer/virtualServices")))
	}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
