// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withSecondGateway adds the gateway second, with the network dmz behind it and the uplinks of the first one.
func withSecondGateway(model vcdsim.Model) vcdsim.Model {
	vdc := &model.Orgs[1].VDCs[0]
	second := vdc.EdgeGateways[0]
	second.Name = "second"
	vdc.EdgeGateways = append(vdc.EdgeGateways, second)
	vdc.Networks = append(vdc.Networks, vcdsim.Network{
		Name:    "dmz",
		Type:    vcdsim.Routed,
		Edge:    "second",
		Gateway: netip.MustParsePrefix("192.168.101.1/24"),
	})
	return model
}

// ours returns the names and descriptions of the Services' objects that all gateways show.
func (c *cluster) ours(uid string) map[string]int {
	out := map[string]int{}
	state := c.sim.State()
	for _, d := range state.Documents {
		if strings.Contains(string(d.Body), "uid="+uid) {
			out[d.Path]++
		}
	}
	for _, space := range state.Model.IPSpaces {
		out["floating IPs"] += len(slices.DeleteFunc(slices.Clone(space.Allocations), func(a vcdsim.IPAllocation) bool {
			return !strings.Contains(a.Description, "uid="+uid)
		}))
	}
	return out
}

// TestSharedObjectsAreRemovedWithTheOldGateway moves a load balancer whose old gateway still uses floating IPs,
// certificates and port profiles that it needs no more.
func TestSharedObjectsAreRemovedWithTheOldGateway(t *testing.T) {
	plain := network("", "nodes")
	arm := oneArm()
	dmz := network("dmz", "dmz")
	dmzArm := oneArm()
	dmzArm.Name = "dmz"
	dmzArm.Network = "dmz"
	tests := []struct {
		name     string
		from, to vcdconfig.Gateway
		also     func(*corev1.Service)
	}{
		{
			name: "with another certificate",
			from: plain,
			to:   dmz,
			also: func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "other-tls")
			},
		},
		{
			name: "without a certificate",
			from: plain,
			to:   dmz,
			also: func(s *corev1.Service) {
				delete(s.Annotations, prefix+"tls-secret")
				s.Spec.Ports[0].AppProtocol = nil
			},
		},
		{name: "to another address", from: plain, to: dmz, also: func(s *corev1.Service) { s.Spec.LoadBalancerIP = "198.51.100.50" }},
		{name: "from one-arm mode", from: arm, to: dmz, also: func(*corev1.Service) {}},
		{
			name: "from one-arm mode to the same, with another port",
			from: arm,
			to:   dmzArm,
			also: func(s *corev1.Service) {
				s.Spec.Ports[0].Port = 8443
			},
		},
		{
			name: "with other ports and another certificate",
			from: arm,
			to:   dmzArm,
			also: func(s *corev1.Service) {
				s.Spec.Ports[0].Port = 8443
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "other-tls")
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, withSecondGateway(vcdsim.IPSpaces()), tt.from, tt.to)
			for _, name := range []string{"shop-tls", "other-tls"} {
				chain, key := certificate(t)
				c.Expect(c.client.Tracker().Add(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
					Data:       map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
				})).To(Succeed())
			}
			s := c.service("shop", func(s *corev1.Service) {
				s.Spec.Ports = s.Spec.Ports[:1]
				s.Spec.Ports[0].AppProtocol = ptr.To("https")
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "shop-tls")
			})
			c.ensured(t, s)

			metav1.SetMetaDataAnnotation(&s.ObjectMeta, gatewayAnnotation, "dmz")
			tt.also(s)
			c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())

			c.ensured(t, s)
			c.ensured(t, s) // as drift repair does
			fresh := c.service("fresh", func(x *corev1.Service) {
				x.UID = "fresh"
				x.Spec = s.Spec
				x.Annotations = map[string]string{}
				x.Spec.LoadBalancerIP = ""
				for _, name := range []string{gatewayAnnotation, prefix + "tls-secret"} {
					x.Annotations[name] = s.Annotations[name]
				}
			})
			if secret, err := c.client.CoreV1().Secrets("shop").Get(t.Context(), fresh.Annotations[prefix+"tls-secret"],
				metav1.GetOptions{}); err == nil {
				secret.Namespace = "fresh"
				c.Expect(c.client.Tracker().Add(secret)).To(Succeed())
			} else {
				delete(fresh.Annotations, prefix+"tls-secret")
			}
			c.ensured(t, fresh)

			c.Expect(c.ours("uid-1")).To(Equal(c.ours("fresh")), "as if it had never been at the other gateway")
		})
	}
}
