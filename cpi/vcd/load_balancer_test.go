// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/cloud-provider/api"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// Annotations, as users and VMware's CPI know them.
const (
	prefix            = "service.beta.kubernetes.io/vcloud-"
	gatewayAnnotation = prefix + "gateway"
)

// A cluster is Services and Nodes in memory, and load balancers on a simulated VCD.
type cluster struct {
	*WithT

	sim      *vcdsim.Simulator
	site     string // the URL by which the simulator is reached; empty: its own
	client   *fake.Clientset
	services cache.Store
	nodes    cache.Store
	events   *record.FakeRecorder
	them     *cpi.LoadBalancers
	sessions *cpivcd.Sessions

	sourceRanges bool
}

func newCluster(t *testing.T, model vcdsim.Model, gateways ...vcdconfig.Gateway) *cluster {
	t.Helper()
	c := &cluster{
		WithT:  NewWithT(t),
		sim:    vcdsimtest.Start(t, vcdsim.Config{Model: model}),
		client: fake.NewClientset(),
		events: record.NewFakeRecorder(100),
	}
	c.configure(t, gateways...)
	c.node("a", "192.168.100.11")
	return c
}

// configure starts the load balancers, anew if they were there before; what was in caches is lost then.
func (c *cluster) configure(t *testing.T, gateways ...vcdconfig.Gateway) {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 2 * time.Millisecond, RequestsPerSecond: 10000, Burst: 10000})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	sessions := cpivcd.NewSessions(pool, vcd.Config{Site: cmp.Or(c.site, c.sim.URL()), Org: "acme", CABundle: c.sim.CA()},
		func() (vcd.Credentials, string, error) {
			return vcd.Credentials{Username: "ccm", Password: "password"}, "1", nil
		})
	c.sessions = sessions
	balancer := cpivcd.NewBalancer(cpivcd.BalancerOptions{
		Session:   sessions.Session,
		Driver:    edge.New(sessions.Session, edge.Options{SourceRanges: c.sourceRanges}),
		ClusterID: "c1",
		VDCs:      []string{"acme-vdc"},
		Gateways:  gateways,
	})
	factory := informers.NewSharedInformerFactory(c.client, 0)
	services := factory.Core().V1().Services()
	nodes := factory.Core().V1().Nodes()
	c.services = services.Informer().GetStore()
	c.nodes = nodes.Informer().GetStore()
	c.them = cpi.NewLoadBalancers(cpi.LoadBalancerOptions{
		Balancer: balancer,
		Client:   c.client,
		Services: services.Lister(),
		Nodes:    nodes.Lister(),
		Recorder: c.events,
		Defaults: (&cpivcd.Dialect{Gateways: gateways}).Defaults("c1", c.sourceRanges, false),
	})
}

// newClusterAtTwo makes load balancers at the default gateway, and in one-arm mode at gateway dmz.
func newClusterAtTwo(t *testing.T) *cluster {
	t.Helper()
	model := vcdsim.K8sTenant()
	vdc := &model.Orgs[1].VDCs[0]
	second := vdc.EdgeGateways[0]
	second.Name = "second"
	second.Uplinks = []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Primary: netip.MustParseAddr("203.0.113.200"),
			Addresses: []vcdsim.Range{{
				From: netip.MustParseAddr("203.0.113.200"),
				To:   netip.MustParseAddr("203.0.113.220"),
			}},
		}},
	}}
	vdc.EdgeGateways = append(vdc.EdgeGateways, second)
	vdc.Networks = append(vdc.Networks,
		vcdsim.Network{
			Name:    "dmz",
			Type:    vcdsim.Routed,
			Edge:    "second",
			Gateway: netip.MustParsePrefix("192.168.101.1/24"),
		})
	arm := oneArm()
	arm.Name = "dmz"
	arm.Network = "dmz"
	return newCluster(t, model, network("", "nodes"), arm)
}

// sets are the ids of all IP sets.
func (c *cluster) sets() []string {
	var out []string
	for _, d := range c.sim.State().Documents {
		if d.Path == "1.0.0/firewallGroups" {
			out = append(out, d.ID)
		}
	}
	return out
}

func (c *cluster) node(name, ip string) {
	c.Expect(c.nodes.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
	})).To(Succeed())
}

// service stores a Service with two ports.
func (c *cluster) service(namespace string, mods ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  namespace,
			Name:       "web",
			UID:        "uid-1",
			Finalizers: []string{servicehelpers.LoadBalancerCleanupFinalizer},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080},
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053},
			},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	c.Expect(c.client.Tracker().Add(s)).To(Succeed())
	c.Expect(c.services.Add(s.DeepCopy())).To(Succeed())
	return s
}

// ensured insists, as Kubernetes does, until the load balancer stands.
func (c *cluster) ensured(t *testing.T, s *corev1.Service) string {
	t.Helper()
	c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	var status *corev1.LoadBalancerStatus
	c.Eventually(func() (err error) {
		status, err = c.them.EnsureLoadBalancer(t.Context(), "", s, nil)
		return err
	}).Should(Succeed())
	c.Expect(status.Ingress).To(HaveLen(1))
	s.Status.LoadBalancer = *status
	c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	return status.Ingress[0].IP
}

// records returns what the core has recorded of Services, as JSON by UID.
func (c *cluster) records(t *testing.T) map[types.UID]string {
	t.Helper()
	out := map[types.UID]string{}
	stored, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), cpi.RecordsName,
		metav1.GetOptions{})
	c.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	for key, value := range stored.Data {
		_, uid, _ := strings.Cut(key, ".")
		out[types.UID(uid)] = value
	}
	return out
}

// copyRecord gives a Service the record of another one.
func (c *cluster) copyRecord(t *testing.T, from, to types.UID) {
	t.Helper()
	configMaps := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	stored, err := configMaps.Get(t.Context(), cpi.RecordsName, metav1.GetOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	for key, value := range stored.Data {
		if prefix, found := strings.CutSuffix(key, string(from)); found {
			stored.Data[prefix+string(to)] = value
		}
	}
	_, err = configMaps.Update(t.Context(), stored, metav1.UpdateOptions{})
	c.Expect(err).NotTo(HaveOccurred())
}

// writes are the changes of load balancers that the simulator was asked for so far.
func (c *cluster) writes() int { return writes(c.sim) }

func writes(sim *vcdsim.Simulator) int {
	n := 0
	for call, times := range sim.Counters() {
		method, rest, _ := strings.Cut(call, " ")
		if method != "GET" &&
			(strings.Contains(rest, "loadBalancer") || strings.Contains(rest, "nat/rules") ||
				strings.Contains(rest, "applicationPortProfiles") ||
				strings.Contains(rest, "firewallGroups") || strings.Contains(rest, "ipSpaces")) {
			n += times
		}
	}
	return n
}

// network is the gateway of a network.
func network(name, of string) vcdconfig.Gateway {
	return vcdconfig.Gateway{Name: name, EdgeGateway: vcdconfig.EdgeGateway{Network: of}}
}

func oneArm() vcdconfig.Gateway {
	g := network("", "nodes")
	g.OneArm = &vcdconfig.Range{
		StartIP: netip.MustParseAddr("192.168.8.2"),
		EndIP:   netip.MustParseAddr("192.168.8.100"),
	}
	return g
}

func TestTheLifeOfALoadBalancer(t *testing.T) {
	tests := []struct {
		name    string
		model   vcdsim.Model
		gateway vcdconfig.Gateway
		writes  int
	}{
		{"on a shared address", vcdsim.K8sTenant(), network("", "nodes"), 2*2 + 1},
		{"on a floating IP", vcdsim.IPSpaces(), network("", "nodes"), 2*2 + 2 + 1},
		{"in one-arm mode", vcdsim.K8sTenant(), oneArm(), 4*2 + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, tt.model, tt.gateway)
			s := c.service("shop")

			ip := c.ensured(t, s)
			c.Expect(c.writes()).To(Equal(tt.writes))
			c.Expect(c.ensured(t, s)).To(Equal(ip))
			c.Expect(c.writes()).To(Equal(tt.writes), "the second time changes nothing")

			c.node("b", "192.168.100.12")
			c.Expect(c.them.UpdateLoadBalancer(t.Context(), "", s, nil)).To(Succeed())
			c.Expect(c.writes()).To(Equal(tt.writes+1), "a node more is one write")

			s.Spec.Ports[0].Port = 8080
			s.Spec.Ports[0].Name = "web"
			c.Expect(c.ensured(t, s)).To(Equal(ip))

			s.Spec.Type = corev1.ServiceTypeClusterIP
			s.Spec.Ports[0].NodePort = 0
			s.Spec.Ports[1].NodePort = 0
			_, exists, err := c.them.GetLoadBalancer(t.Context(), "", s)
			c.Expect(err).NotTo(HaveOccurred())
			c.Expect(exists).To(BeTrue())
			c.Eventually(func() error { return c.them.EnsureLoadBalancerDeleted(t.Context(), "", s) }).Should(Succeed())
			c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
			_, exists, err = c.them.GetLoadBalancer(t.Context(), "", s)
			c.Expect(err).NotTo(HaveOccurred())
			c.Expect(exists).To(BeFalse())
			c.Expect(c.events.Events).To(BeEmpty())
		})
	}
}

func TestAnUnavailableSettingIsRejectedUntilItIsCorrected(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "9.9.9.9" })

	_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)

	var retry *api.RetryError
	c.Expect(err).To(BeAssignableToTypeOf(retry))
	c.Expect(c.events.Events).To(Receive(ContainSubstring("9.9.9.9")))
	c.Expect(c.writes()).To(BeZero(), "nothing half-built")
	s.Spec.LoadBalancerIP = ""
	c.ensured(t, s)
}

func TestADeletedServiceIsNotCreatedAgain(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop")
	c.ensured(t, s)
	going := s.DeepCopy()
	now := metav1.Now()
	going.DeletionTimestamp = &now
	c.Expect(c.services.Update(going)).To(Succeed())
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", going)).To(Succeed())
	writes := c.writes()

	// The controller tells of nodes also to Services that it is about to delete, and knows them as they were.
	c.Expect(c.them.UpdateLoadBalancer(t.Context(), "", s, nil)).To(Succeed())
	c.Expect(c.services.Delete(going)).To(Succeed())
	c.Expect(c.them.UpdateLoadBalancer(t.Context(), "", s, nil)).To(Succeed())

	c.Expect(c.writes()).To(Equal(writes))
}

func TestMembersAreUpdatedAlthoughTheServiceIsRejected(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop")
	c.ensured(t, s)
	s.Spec.LoadBalancerIP = "9.9.9.9"
	c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	writes := c.writes()

	c.node("b", "192.168.100.12")
	_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)

	var retry *api.RetryError
	c.Expect(err).To(BeAssignableToTypeOf(retry))
	c.Expect(c.events.Events).To(Receive(ContainSubstring("9.9.9.9")))
	c.Expect(c.writes()).To(Equal(writes+1), "the new node is a member")
}

func TestTLSAtTheLoadBalancerIsProxyMode(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop", func(s *corev1.Service) {
		s.Spec.Ports = s.Spec.Ports[:1]
		s.Spec.Ports[0].AppProtocol = ptr.To("https")
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "shop-tls")
	})
	chain, key := certificate(t)
	c.Expect(c.client.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"},
		Data:       map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	})).To(Succeed())

	c.ensured(t, s)

	c.Expect(*s.Status.LoadBalancer.Ingress[0].IPMode).To(Equal(corev1.LoadBalancerIPModeProxy))
}

func TestTheCertificateOfASecretIsRead(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop", func(s *corev1.Service) {
		s.Spec.Ports[0].AppProtocol = ptr.To("https")
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "shop-tls")
	})
	forbid := true
	c.client.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return forbid && a.GetNamespace() == "shop", nil, apierrors.NewForbidden(corev1.Resource("secrets"), "shop-tls",
			errors.New("no role"))
	})
	refused := func(text string) {
		t.Helper()
		_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)
		c.Expect(err).To(And(BeAssignableToTypeOf(&api.RetryError{}), MatchError(ContainSubstring("InvalidSecret"))))
		c.Expect(c.events.Events).To(Receive(ContainSubstring(text)))
		c.Expect(c.events.Events).To(BeEmpty())
	}
	refused(`kubectl create rolebinding ccm-tls-secrets --namespace=shop --clusterrole=system:cloud-controller-manager:tls-secrets --serviceaccount=kube-system:cloud-controller-manager`)

	forbid = false
	refused(`"shop-tls" with the certificate does not exist`)

	c.Expect(c.client.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"},
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("x")},
	})).To(Succeed())
	refused("no valid certificate")
}

// certificate makes one and its key.
func certificate(t *testing.T) (chain, key []byte) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(time.Hour),
		DNSNames:     []string{"shop.example.com"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	g.Expect(err).NotTo(HaveOccurred())
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})
}
