// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func node(name string, mods ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:              name,
		Labels:            map[string]string{},
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
	}}
	for _, mod := range mods {
		mod(n)
	}
	return n
}

func ips(addresses ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, a := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
		}
	}
}

// web is a Service with two ports, after the mods.
func web(mods ...func(*corev1.Service)) service.Input {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080},
				{Name: "tls", Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30443},
			},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	in := service.Input{
		Service: s,
		Nodes:   []*corev1.Node{node("a", ips("10.0.0.11")), node("b", ips("10.0.0.12"))},
		Now:     now,
		Defaults: (&Dialect{
			Gateways: []vcdconfig.Gateway{
				{EdgeGateway: vcdconfig.EdgeGateway{
					OneArm: &vcdconfig.Range{StartIP: ip("192.168.8.2"), EndIP: ip("192.168.8.9")},
				}},
				{Name: "dmz", EdgeGateway: vcdconfig.EdgeGateway{IPSpace: "public"}},
			},
		}).Defaults("c1", false, false),
	}
	return in
}

// A vcdRequest is a request with the VCD-specific part of it.
type vcdRequest struct {
	service.Request

	Desired lb.Desired
}

func requestFor(in service.Input) vcdRequest {
	w := service.For(in)
	return vcdRequest{w, desired(w.Desired)}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[prefix+pairs[i]] = pairs[i+1]
		}
	}
}

func protocol(i int, name string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports[i].AppProtocol = &name }
}

func TestApplications(t *testing.T) {
	tests := []struct {
		name string
		mods []func(*corev1.Service)
		want []lb.Application
	}{
		{name: "plain TCP", want: []lb.Application{lb.L4, lb.L4}},
		{
			name: "as appProtocol says, in any spelling",
			mods: []func(*corev1.Service){protocol(0, "HTTP"), protocol(1, "https")},
			want: []lb.Application{lb.HTTP, lb.HTTPS},
		},
		{
			name: "an appProtocol that the load balancer does not know",
			mods: []func(*corev1.Service){protocol(0, "kubernetes.io/h2c")},
			want: []lb.Application{lb.L4, lb.L4},
		},
		{
			name: "TLS on layer 4 for a port that is named",
			mods: []func(*corev1.Service){annotated("avi-ssl-ports", " 443 ")},
			want: []lb.Application{lb.L4, lb.L4TLS},
		},
		{
			name: "spaces in the list do not matter",
			mods: []func(*corev1.Service){annotated("avi-ssl-ports", "80, 443")},
			want: []lb.Application{lb.L4TLS, lb.L4TLS},
		},
		{
			name: "HTTPS for a port that is named and is https",
			mods: []func(*corev1.Service){annotated("avi-ssl-ports", "443"), protocol(1, "https")},
			want: []lb.Application{lb.L4, lb.HTTPS},
		},
		{
			name: "nothing of it, if TLS passes through",
			mods: []func(*corev1.Service){
				annotated("avi-ssl-ports", "443", "avi-ssl-no-termination", "True"),
				protocol(0, "http"),
				protocol(1, "https"),
			},
			want: []lb.Application{lb.L4, lb.L4},
		},
		{
			name: "settings of a port have precedence",
			mods: []func(*corev1.Service){annotated("port-profiles", "80=http, 443=L4", "avi-ssl-ports", "443")},
			want: []lb.Application{lb.HTTP, lb.L4},
		},
		{
			name: "HTTP over UDP is UDP",
			mods: []func(*corev1.Service){
				protocol(1, "https"),
				func(s *corev1.Service) { s.Spec.Ports[1].Protocol = corev1.ProtocolUDP },
			},
			want: []lb.Application{lb.L4, lb.L4},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			request := requestFor(web(tt.mods...))

			g.Expect(request.Refusals).To(BeEmpty())
			var got []lb.Application
			for _, l := range request.Desired.Listeners {
				got = append(got, l.Application)
			}
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestOnlyNamedPortsEndTLSWhereTheConfigurationSaysSo(t *testing.T) {
	g := NewWithT(t)
	in := web(protocol(0, "https"), protocol(1, "https"), annotated("avi-ssl-ports", "443"))
	in.Defaults = (&Dialect{Gateways: []vcdconfig.Gateway{{}}, TLSAsAnnotated: true}).Defaults("c1", false, false)

	request := requestFor(in)

	g.Expect(request.Refusals).To(BeEmpty())
	g.Expect(request.Desired.Listeners[0].Application).To(Equal(lb.L4), "TLS passes through")
	g.Expect(request.Desired.Listeners[1].Application).To(Equal(lb.HTTPS))
}

func TestCertificates(t *testing.T) {
	chain, key := certificate(t)
	secret := &corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey:       []byte(chain),
		corev1.TLSPrivateKeyKey: []byte(key),
	}}
	together := &corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey:       []byte("for the shop\n" + key + chain),
		corev1.TLSPrivateKeyKey: []byte(key),
	}}
	broken := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: []byte(chain)}}
	tests := []struct {
		name     string
		mod      func(*corev1.Service)
		defaults string
		secrets  map[string]*corev1.Secret
		want     lb.Certificate
		reason   string
	}{
		{name: "that of the cluster, if none is named", mod: annotated(), want: lb.Certificate{Alias: "c1-cert"}},
		{name: "that of the configuration", mod: annotated(), defaults: "web", want: lb.Certificate{Alias: "web"}},
		{
			name:     "that of the annotation",
			mod:      annotated("avi-ssl-cert-alias", " shop "),
			defaults: "web",
			want:     lb.Certificate{Alias: "shop"},
		},
		{
			name: "that of the port",
			mod:  annotated("avi-ssl-cert-alias", "shop", "port-certificates", "443=admin"),
			want: lb.Certificate{Alias: "admin"},
		},
		{
			name:    "that of a Secret",
			mod:     annotated("avi-ssl-cert-alias", "shop", "tls-secret", "shop-tls"),
			secrets: map[string]*corev1.Secret{"shop-tls": secret},
			want:    lb.Certificate{Chain: chain, Key: key, Source: "Secret shop-tls"},
		},
		{
			name:    "that of a Secret for the port",
			mod:     annotated("tls-secret", "80=other, 443=shop-tls"),
			secrets: map[string]*corev1.Secret{"shop-tls": secret},
			want:    lb.Certificate{Chain: chain, Key: key, Source: "Secret shop-tls"},
		},
		{
			name:    "that of a Secret, without the key that is beside it",
			mod:     annotated("tls-secret", "shop-tls"),
			secrets: map[string]*corev1.Secret{"shop-tls": together},
			want:    lb.Certificate{Chain: chain, Key: key, Source: "Secret shop-tls"},
		},
		{name: "none of a Secret that is not there", mod: annotated("tls-secret", "shop-tls"), reason: reasonInvalidSecret},
		{
			name:    "none of a Secret without a key",
			mod:     annotated("tls-secret", "shop-tls"),
			secrets: map[string]*corev1.Secret{"shop-tls": broken},
			reason:  reasonInvalidSecret,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			in := web(protocol(1, "https"), tt.mod)
			in.Secrets = tt.secrets
			in.Dialect.(*Dialect).Certificate = tt.defaults

			request := requestFor(in)

			g.Expect(request.Terminates).To(BeTrue())
			if tt.reason != "" {
				g.Expect(request.Refusals).To(ConsistOf(HaveField("Reason", tt.reason)))
				return
			}
			g.Expect(request.Refusals).To(BeEmpty())
			g.Expect(request.Desired.Listeners[1].Certificate).To(Equal(tt.want))
			g.Expect(request.Desired.Listeners[0].Certificate).To(Equal(lb.Certificate{}))
		})
	}
}

// certificate makes one and its key.
func certificate(t *testing.T) (chain, key string) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, &private.PublicKey, private)
	g.Expect(err).NotTo(HaveOccurred())
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}))
}

func TestSecretNames(t *testing.T) {
	g := NewWithT(t)

	g.Expect((&Dialect{}).SecretNames(web(annotated("tls-secret",
		"443=b, 80=a, 8443=b")).Service)).To(Equal([]string{"a", "b"}))
	g.Expect((&Dialect{}).SecretNames(web(annotated("tls-secret", "a")).Service)).To(Equal([]string{"a"}))
	g.Expect((&Dialect{}).SecretNames(web(annotated("tls-secret", "1=c, 2=d, 443=b")).Service)).
		To(Equal([]string{"b"}), "those of ports that the Service has")
	g.Expect((&Dialect{}).SecretNames(web().Service)).To(BeEmpty())
}

func TestSettingsWithoutEffectAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		mod  func(*corev1.Service)
		says string
	}{
		"a subnet for internal load balancers of one that is not internal": {
			annotated("internal-subnet",
				"192.168.9.0/24"),
			"has no effect without",
		},
		"a redirect of a Service without a port of HTTP": {annotated("http-redirect-https", "443"), "because no port is HTTP"},
		"headers of a Service without a port of HTTP": {
			annotated("http-request-headers", "X-Env: prod"),
			"no port forwards HTTP requests",
		},
		"ports that the Service does not have": {annotated("avi-ssl-ports", "1, 2, 3"), "3 ports"},
		"an own time for session affinity": {
			func(s *corev1.Service) {
				s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
				s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)}}
			},
			"sessionAffinityConfig",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			request := requestFor(web(tt.mod))

			g.Expect(request.Notices).To(ConsistOf(HaveField("Message", ContainSubstring(tt.says))))
			g.Expect(request.Refusals).To(BeEmpty())
		})
	}
}

func TestTheRest(t *testing.T) {
	g := NewWithT(t)
	in := web(annotated("engine-group", "seg", "algorithm", "least_load", "share-ip", "dns", "preserve-client-ip",
		"true", "gateway", "dmz", "health-monitor", "ping",
		"health-interval", "5s", "health-timeout", "2s", "health-failures", "2", "health-successes", "4", "load-balancer-ip", "203.0.113.7, 2001:db8::7",
		"internal", "true", "internal-subnet", "192.168.9.0/24"),
		func(s *corev1.Service) {
			s.Spec.LoadBalancerIP = "203.0.113.8"
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
			s.Spec.LoadBalancerSourceRanges = []string{" 192.0.2.1/24", "0.0.0.0/0"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
				{IP: "203.0.113.9"},
				{IP: "203.0.113.10"},
				{Hostname: "x"},
			}
		})
	in.SourceRanges = true
	in.Records = servicetest.Records{in.Service.UID: {Addresses: []netip.Addr{ip("203.0.113.9")}}}
	namesake := in.Service.DeepCopy()
	namesake.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}
	in.Duplicates = []*corev1.Service{namesake}

	request := requestFor(in)

	g.Expect(request.Refusals).To(BeEmpty())
	g.Expect(request.Location).To(Equal("dmz"))
	d := request.Desired
	d.Listeners = nil
	d.Members = nil
	g.Expect(d).To(Equal(lb.Desired{
		Desired: loadbalancer.Desired{
			Owner:     loadbalancer.Owner{Cluster: "c1", Namespace: "shop", Name: "web", UID: "u1"},
			Families:  []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6},
			Requested: []netip.Addr{ip("203.0.113.7"), ip("2001:db8::7")},
			Intent:    []netip.Addr{ip("203.0.113.9")},
			Reserved: []loadbalancer.Use{
				{Address: ip("10.0.0.11"), Kind: "node", Name: "a", Reserved: true},
				{Address: ip("10.0.0.12"), Kind: "node", Name: "b", Reserved: true},
			},
			Published:    []netip.Addr{ip("203.0.113.9")},
			Duplicate:    true,
			Share:        "dns",
			Sticky:       true,
			SourceRanges: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("0.0.0.0/0")},
		},
		Internal:         true,
		Subnet:           netip.MustParsePrefix("192.168.9.0/24"),
		IPSpace:          "public",
		PreserveClientIP: true,
		EngineGroup:      "seg",
		Algorithm:        "LEAST_LOAD",
	}))
	g.Expect(request.Desired.Listeners[0].Monitor).To(Equal(lb.MonitorPing))
	g.Expect(request.Desired.Listeners[0].Check).To(Equal(lb.HealthCheck{
		Interval:  5 * time.Second,
		Timeout:   2 * time.Second,
		Successes: 4,
		Failures:  2,
	}))
}

func TestALocalTrafficPolicyDoesNotHelpUDP(t *testing.T) {
	local := func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 32000
	}
	udp := func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }
	g := NewWithT(t)

	g.Expect(requestFor(web(local)).Notices).To(BeEmpty())
	g.Expect(requestFor(web(udp)).Notices).To(BeEmpty())
	g.Expect(requestFor(web(local, udp)).Notices).To(ConsistOf(HaveField("Reason", lb.Unsupported)))
}

func TestWhatIsWrong(t *testing.T) {
	tests := []struct {
		name    string
		mods    []func(*corev1.Service)
		reasons []string
		says    string
	}{
		{
			name:    "every invalid annotation is reported",
			mods:    []func(*corev1.Service){annotated("avi-ssl-ports", "https", "internal", "perhaps")},
			reasons: []string{service.InvalidAnnotation, service.InvalidAnnotation},
			says:    `such as "443, 8443"`,
		},
		{
			name:    "an unknown profile",
			mods:    []func(*corev1.Service){annotated("port-profiles", "443=quic")},
			reasons: []string{service.InvalidAnnotation},
			says:    `"quic"`,
		},
		{
			name:    "an unknown gateway",
			mods:    []func(*corev1.Service){annotated("gateway", "typo")},
			reasons: []string{service.InvalidAnnotation},
			says:    `"typo"`,
		},
		{
			name:    "an unknown algorithm",
			mods:    []func(*corev1.Service){annotated("algorithm", "best")},
			reasons: []string{service.InvalidAnnotation},
			says:    `"BEST"`,
		},
		{
			name:    "an interval of health checks that is not a number of seconds",
			mods:    []func(*corev1.Service){annotated("health-interval", "1500ms")},
			reasons: []string{service.InvalidAnnotation},
			says:    "whole seconds",
		},
		{
			name:    "a number of failed health checks that is none",
			mods:    []func(*corev1.Service){annotated("health-failures", "0")},
			reasons: []string{service.InvalidAnnotation},
			says:    "not a positive number",
		},
		{
			name:    "a status code in place of a class",
			mods:    []func(*corev1.Service){annotated("health-codes", "2xx, 404")},
			reasons: []string{service.InvalidAnnotation},
			says:    "1xx, 2xx, 3xx, 4xx, 5xx",
		},
		{
			name:    "a key of a shared address that another line follows",
			mods:    []func(*corev1.Service){annotated("share-ip", "x\nmachine")},
			reasons: []string{service.InvalidAnnotation},
			says:    "share-ip",
		},
		{
			name:    "one with a no-break space",
			mods:    []func(*corev1.Service){annotated("share-ip", "dns\u00a0shop")},
			reasons: []string{service.InvalidAnnotation},
			says:    "share-ip",
		},
		{
			name:    "one that does not fit into a description",
			mods:    []func(*corev1.Service){annotated("share-ip", strings.Repeat("k", 33))},
			reasons: []string{service.InvalidAnnotation},
			says:    "share-ip",
		},
		{
			name:    "an address that is none",
			mods:    []func(*corev1.Service){func(s *corev1.Service) { s.Spec.LoadBalancerIP = "shop.example.com" }},
			reasons: []string{service.InvalidFamilies},
			says:    "loadBalancerIP",
		},
		{
			name: "a source range that is none",
			mods: []func(*corev1.Service){func(
				s *corev1.Service,
			) {
				s.Spec.LoadBalancerSourceRanges = []string{"everybody"}
			}},
			reasons: []string{service.InvalidSourceRanges},
			says:    "everybody",
		},
		{
			name: "source ranges that are not switched on",
			mods: []func(*corev1.Service){func(
				s *corev1.Service,
			) {
				s.Annotations[service.RangesAnnotation] = "192.0.2.0/24"
			}},
			reasons: []string{service.InvalidSourceRanges},
			says:    "source ranges are not enabled",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			request := requestFor(web(tt.mods...))

			var got []string
			for _, f := range request.Refusals {
				got = append(got, f.Reason)
			}
			g.Expect(got).To(Equal(tt.reasons))
			g.Expect(request.Refusals[0].Message).To(ContainSubstring(tt.says))
		})
	}
}

func TestNotices(t *testing.T) {
	g := NewWithT(t)
	in := web(annotated("ssl-ports", "443", "avi-ssl-ports", "80, 8443"), protocol(0, "http"))

	g.Expect(requestFor(in).Refusals).To(BeEmpty())
	g.Expect(requestFor(in).Notices).To(ConsistOf(HaveField("Message", ContainSubstring("ssl-ports is unknown")),
		HaveField("Message", ContainSubstring("8443")),
		HaveField("Message", ContainSubstring("no TLS"))))
}

func TestAddressesOfNodesAndReservedOnesAreNotTaken(t *testing.T) {
	for _, mods := range [][]func(*corev1.Service){
		nil,
		{annotated("internal", "true")},
		{func(s *corev1.Service) { s.Spec.LoadBalancerIP = "10.0.0.12" }},
	} {
		g := NewWithT(t)
		in := web(mods...)
		in.Dialect.(*Dialect).Reserved = []netip.Addr{ip("10.0.0.5")}

		reserved := requestFor(in).Desired.Reserved

		g.Expect(reserved).To(ConsistOf(
			loadbalancer.Use{Address: ip("10.0.0.11"), Kind: "node", Name: "a", Reserved: true},
			loadbalancer.Use{Address: ip("10.0.0.12"), Kind: "node", Name: "b", Reserved: true},
			loadbalancer.Use{Address: ip("10.0.0.5"), Kind: "configuration", Name: "loadbalancer.reservedAddresses", Reserved: true},
		))
	}
}

func TestAbsentNeedsNothingToBeRight(t *testing.T) {
	g := NewWithT(t)
	in := web(annotated("internal", "perhaps"))
	in.Records = servicetest.Records{in.Service.UID: {Addresses: []netip.Addr{ip("203.0.113.9")}}}
	in.Nodes = nil
	in.Locations = nil

	d := desired(service.Absent(in))

	g.Expect(d.Absent).To(BeTrue())
	g.Expect(d.Intent).To(Equal([]netip.Addr{ip("203.0.113.9")}))
	g.Expect(d.Listeners).To(HaveLen(2))
}

func TestOnlyTheURNOfAGatewayIsALocation(t *testing.T) {
	g := NewWithT(t)
	id := (&Dialect{}).Names().LocationID

	g.Expect(id.MatchString("urn:vcloud:gateway:0b4c2b5a-3f0e-4f0e-9f8e-0d1f3f6f2a11")).To(BeTrue())
	for _, text := range []string{
		"a1", "gone:urn:vcloud:gateway:0b4c2b5a-3f0e-4f0e-9f8e-0d1f3f6f2a11", "urn:vcloud:gateway:../x",
	} {
		g.Expect(id.MatchString(text)).To(BeFalse(), text)
	}
}

func TestHeadersAreParsed(t *testing.T) {
	tests := []struct {
		name, annotation string
		want             lb.Headers
		problem          string
	}{
		{"one header", "X-Env: prod", "X-Env: prod", ""},
		{"a header to remove", "Server:", "Server:", ""},
		{"several headers in any order", "\n x-b : 2: 3 \n\nX-A:1\n", "X-A: 1\nx-b: 2: 3", ""},
		{"no name", ": a", "", "is not a header"},
		{"no colon", "X-Env", "", "is not a header"},
		{"a name with a space", "X Env: a", "", "is not a header"},
		{"a header that frames requests", "Transfer-Encoding: chunked", "", "frames requests"},
		{"the host", "host: example.com", "", "frames requests"},
		{"a duplicate", "X-A: 1\nx-a: 2", "", "is duplicated"},
		{"a value with other letters", "X-A: ä", "", "characters of ASCII"},
		{"a long value", "X-A: " + strings.Repeat("a", 1025), "", "at most 1024"},
		{"many headers", strings.Join(manyHeaders(17), "\n"), "", "use at most 16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := headers(tt.annotation)

			g.Expect(got).To(Equal(tt.want))
			if tt.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tt.problem)))
			}
		})
	}
}

// manyHeaders returns n headers.
func manyHeaders(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("X-%d: a", i))
	}
	return lines
}

func TestHeadersApplyToPortsThatForwardHTTP(t *testing.T) {
	g := NewWithT(t)
	in := web(annotated("http-request-headers", "X-Env: prod", "http-response-headers", "Server:", "http-redirect-https", "443"),
		func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{
				{Name: "plain", Port: 80, NodePort: 30080, AppProtocol: ptr.To("http")},
				{Name: "tls", Port: 443, NodePort: 30443, AppProtocol: ptr.To("https")},
				{Name: "other", Port: 5432, NodePort: 30432},
			}
		})

	request := requestFor(in)

	g.Expect(request.Desired.Listeners).To(HaveExactElements(
		HaveField("Rules", lb.HTTPRules{Redirect: 443}),
		HaveField("Rules", lb.HTTPRules{RequestHeaders: "X-Env: prod", ResponseHeaders: "Server:"}),
		HaveField("Rules", lb.HTTPRules{})))
	g.Expect(request.Notices).To(BeEmpty())
}
