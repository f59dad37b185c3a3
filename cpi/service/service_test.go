// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
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

func label(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[name] = "" }
}

func young(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }

// web returns a Service with two ports, after the mods.
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
	return service.Input{
		Service: s,
		Nodes:   []*corev1.Node{node("a", ips("10.0.0.11")), node("b", ips("10.0.0.12"))},
		Now:     now,
		Defaults: service.Defaults{
			Cluster:   "c1",
			Dialect:   servicetest.Dialect{Noun: "site"},
			Locations: []string{"", "dmz"},
		},
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func TestMembers(t *testing.T) {
	tests := []struct {
		name  string
		nodes []*corev1.Node
		v6    bool
		want  []string
		wait  string
		left  bool
	}{
		{
			name:  "all nodes",
			nodes: []*corev1.Node{node("b", ips("10.0.0.2")), node("a", ips("10.0.0.1"))},
			want:  []string{"10.0.0.1", "10.0.0.2"},
		},
		{
			name: "no control planes, as long as there are others",
			nodes: []*corev1.Node{
				node("a", ips("10.0.0.1"), label("node-role.kubernetes.io/control-plane")),
				node("b", ips("10.0.0.2"), label("node-role.kubernetes.io/master")),
				node("c", ips("10.0.0.3")),
			},
			want: []string{"10.0.0.3"},
		},
		{
			name:  "the only node, although it is a control plane",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1"), label("node-role.kubernetes.io/control-plane"))},
			want:  []string{"10.0.0.1"},
		},
		{
			name:  "no excluded node",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1"), label(corev1.LabelNodeExcludeBalancers))},
		},
		{
			name: "no node that the autoscaler removes",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1"),
				func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} })},
		},
		{
			name:  "the first address of each family",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1", "fd00::1", "10.0.0.9"))},
			want:  []string{"10.0.0.1", "fd00::1"},
		},
		{
			name:  "it does not wait for a new node",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1")), node("b", young)},
			want:  []string{"10.0.0.1"},
		},
		{
			name:  "unless no node has an address yet",
			nodes: []*corev1.Node{node("b", young)},
			wait:  "node b has no IPv4 address yet",
		},
		{
			name:  "or no node has one of the family",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1"), young)},
			v6:    true,
			want:  []string{"10.0.0.1"},
			wait:  "node a has no IPv6 address yet",
		},
		{
			name:  "nodes of the other family, for objects that the whole cluster shares",
			v6:    true,
			nodes: []*corev1.Node{node("a", ips("10.0.0.1", "fd00::1")), node("b", young, ips("10.0.0.2"))},
			want:  []string{"10.0.0.1", "fd00::1", "10.0.0.2"},
		},
		{
			name:  "nodes of the other family, with a notice",
			v6:    true,
			left:  true,
			nodes: []*corev1.Node{node("a", ips("10.0.0.1", "fd00::1")), node("b", ips("10.0.0.2"))},
			want:  []string{"10.0.0.1", "fd00::1", "10.0.0.2"},
		},
		{
			name:  "but not forever",
			nodes: []*corev1.Node{node("a", ips("10.0.0.1")), node("b")},
			want:  []string{"10.0.0.1"},
			left:  true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			in := web()
			in.Nodes = tt.nodes
			if tt.v6 {
				in.Service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
			}

			request := service.For(in)

			var got []string
			for _, m := range request.Desired.Members {
				for _, a := range m.Addresses {
					got = append(got, a.String())
				}
			}
			g.Expect(got).To(Equal(tt.want))
			g.Expect(request.Wait).To(Equal(tt.wait))
			g.Expect(request.Notices).To(HaveLen(map[bool]int{true: 1}[tt.left]))
		})
	}
}

func TestSourceRangesForAllClientsMeanNoRestriction(t *testing.T) {
	g := NewWithT(t)
	in := web(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0"} })

	request := service.For(in)

	g.Expect(request.Refusals).To(BeEmpty())
	g.Expect(request.Desired.SourceRanges).To(BeEmpty())
}

func TestAnnotationsOfEveryCloud(t *testing.T) {
	g := NewWithT(t)
	https := "https"
	in := web(annotated(servicetest.Location, "dmz", servicetest.Addresses, "203.0.113.7"), func(s *corev1.Service) {
		s.Spec.LoadBalancerIP = "203.0.113.8"
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.LoadBalancerSourceRanges = []string{" 192.0.2.1/24"}
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 32000
		s.Spec.Ports[1].AppProtocol = &https
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
	})
	in.SourceRanges = true
	in.Generation = 7
	in.Records = servicetest.Records{in.Service.UID: {Addresses: []netip.Addr{ip("203.0.113.9")}}}
	in.Nodes[0].Spec.ProviderID = "test://a"

	request := service.For(in)

	g.Expect(request.Refusals).To(BeEmpty())
	g.Expect(request.Location).To(Equal("dmz"))
	g.Expect(request.Desired).To(Equal(service.Desired{
		Desired: loadbalancer.Desired{
			Owner:        loadbalancer.Owner{Cluster: "c1", Namespace: "shop", Name: "web", UID: "u1"},
			Families:     []loadbalancer.Family{loadbalancer.IPv4},
			Generation:   7,
			Sticky:       true,
			Requested:    []netip.Addr{ip("203.0.113.7")},
			Intent:       []netip.Addr{ip("203.0.113.9")},
			Published:    []netip.Addr{ip("203.0.113.9")},
			SourceRanges: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		},
		Ports: []service.Port{
			{Name: "http", Protocol: loadbalancer.TCP, Number: 80, NodePort: 30080, HealthPort: 32000},
			{
				Name:        "tls",
				Protocol:    loadbalancer.TCP,
				Number:      443,
				NodePort:    30443,
				HealthPort:  32000,
				AppProtocol: "https",
			},
		},
		Members: []service.Member{
			{Node: "a", ProviderID: "test://a", Addresses: []netip.Addr{ip("10.0.0.11")}},
			{Node: "b", Addresses: []netip.Addr{ip("10.0.0.12")}},
		},
	}))
}

func TestANonexistentLocation(t *testing.T) {
	g := NewWithT(t)

	request := service.For(web(annotated(servicetest.Location, "typo")))

	g.Expect(request.Refusals).To(ConsistOf(loadbalancer.Finding{
		Reason: service.InvalidAnnotation,
		Message: `the configuration of the cloud controller manager has no site "typo": correct the annotation ` +
			servicetest.Location,
	}))
}

// reservedFrom returns the addresses that a Service reserves from another.
func reservedFrom(other *corev1.Service, records service.Records, mods ...func(*corev1.Service)) []netip.Addr {
	in := web(append(mods, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })...)
	in.Records = records
	var out []netip.Addr
	for _, use := range in.Promised(in.Service, other) {
		out = append(out, use.Address)
	}
	return out
}

func TestAddressesReservedByAService(t *testing.T) {
	in := web(func(s *corev1.Service) {
		s.Name = "other"
		s.UID = "u2"
	})
	other := in.Service
	tests := []struct {
		name    string
		service func(*corev1.Service)
		want    []netip.Addr
	}{
		{
			name:    "the requested address of each family",
			service: annotated(servicetest.Addresses, "203.0.113.7, 2001:db8::7"),
			want:    []netip.Addr{ip("203.0.113.7"), ip("2001:db8::7")},
		},
		{
			name:    "none of several addresses of one family, because they are rejected",
			service: annotated(servicetest.Addresses, "203.0.113.7, 203.0.113.8, 203.0.113.9"),
		},
		{
			name:    "nor in its spec",
			service: func(s *corev1.Service) { s.Spec.LoadBalancerIP = "203.0.113.7,203.0.113.8" },
		},
		{
			name:    "none of the requested ones while another annotation is invalid",
			service: annotated(servicetest.Addresses, "203.0.113.7", servicetest.DryRun, "perhaps"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(reservedFrom(other, nil, tt.service)).To(Equal(tt.want))
		})
	}
}

func TestRecordedAddressesAreNotReservedByOtherServices(t *testing.T) {
	g := NewWithT(t)
	in := web(func(s *corev1.Service) {
		s.Name = "other"
		s.UID = "u2"
	})
	recorded := servicetest.Records{in.Service.UID: {Addresses: []netip.Addr{ip("203.0.113.7")}}}

	g.Expect(reservedFrom(in.Service, recorded, annotated(servicetest.Addresses, "203.0.113.7"))).To(BeEmpty())

	annotated(servicetest.OlderAddresses, "203.0.113.7")(in.Service)
	g.Expect(reservedFrom(in.Service, nil, annotated(servicetest.Addresses, "203.0.113.7"))).NotTo(BeEmpty(),
		"anyone can write the annotation")
}
