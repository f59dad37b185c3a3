// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestAHostnameIsPublishedInPlaceOfTheAddress(t *testing.T) {
	g := NewWithT(t)
	stands := loadbalancer.Status{
		Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.1")},
		Ports:     []loadbalancer.PortStatus{{Protocol: loadbalancer.TCP, Port: 80}},
	}
	a := &attempt{service: &corev1.Service{}, request: service.Request{Hostname: "shop.example.com", Terminates: true}}

	named := a.published(stands)

	g.Expect(named.Ingress).To(HaveExactElements(corev1.LoadBalancerIngress{
		Hostname: "shop.example.com",
		Ports:    []corev1.PortStatus{{Protocol: corev1.ProtocolTCP, Port: 80}},
	}), "a hostname has no IP mode")
	g.Expect(a.published(loadbalancer.Status{}).Ingress).To(BeEmpty(), "nothing exists yet")

	a.service.Status.LoadBalancer = *named
	a.request.Hostname = ""
	g.Expect(a.published(stands).Ingress).To(HaveExactElements(
		And(HaveField("IP", "203.0.113.1"), HaveField("IPMode", ptr.To(corev1.LoadBalancerIPModeProxy)))))
}
