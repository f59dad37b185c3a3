// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// inClusterPool returns a pool of Cluster API's in-cluster provider.
func (s *site) inClusterPool(name, addresses string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
		"kind":       "InClusterIPPool",
		"metadata":   map[string]any{"name": name, "namespace": s.namespace},
		"spec":       map[string]any{"addresses": []any{addresses}, "prefix": int64(24)},
	}}
}

func poolRef(name string) infrav1.IPPoolReference {
	return infrav1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: name}
}

// endpointMistakes returns the mistakes in virtual IPs.
func endpointMistakes() []mistake {
	pools := func(names ...string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) {
			c.Spec.ControlPlaneEndpoint.Host = ""
			c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{AddressSource: infrav1.VIPSourceIPAM}
			for _, name := range names {
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.PoolRefs = append(c.Spec.ControlPlaneLoadBalancer.KubeVIP.PoolRefs, poolRef(name))
			}
		}
	}
	return []mistake{
		{
			name:      "an unknown pool of virtual IPs",
			cluster:   pools("nowhere"),
			reason:    infrav1.PoolNotFoundReason,
			names:     "spec.controlPlaneLoadBalancer.kubeVIP.poolRefs[0]",
			inCluster: true,
			fix:       func(s *site) { s.create(s.inClusterPool("nowhere", "192.168.100.203")) },
		},
		{
			name: "an exhausted pool of virtual IPs",
			prepare: func(s *site) {
				s.create(s.inClusterPool("small", "192.168.100.203"))
				s.ready(s.cluster("first", pools("small")))
			},
			cluster:   pools("small"),
			reason:    infrav1.PoolExhaustedReason,
			names:     "spec.controlPlaneLoadBalancer.kubeVIP.poolRefs[0]",
			inCluster: true,
			fix:       func(s *site) { s.deleteCluster("first") },
		},
		{
			name:      "the virtual IP of another cluster",
			prepare:   func(s *site) { s.ready(s.cluster("first")) },
			reason:    infrav1.VIPInUseReason,
			names:     "VCDCluster first",
			inCluster: true,
			fix:       func(s *site) { s.deleteCluster("first") },
		},
		{
			name: "a BGP peer with a missing password Secret",
			cluster: func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.BGP = &infrav1.KubeVIPBGP{
					ASNumber:        65001,
					RouterInterface: "ens192",
					Peers: []infrav1.KubeVIPPeer{{
						Address:           "192.168.100.1",
						ASNumber:          65000,
						PasswordSecretRef: &infrav1.SecretKeyReference{Name: "router"},
					}},
				}
			},
			reason:    infrav1.PeerPasswordMissingReason,
			names:     "Secret router",
			inCluster: true,
			fix: func(s *site) {
				s.create(&corev1.Secret{
					ObjectMeta: s.meta("router"),
					Data:       map[string][]byte{infrav1.SecretPassword: []byte("s3cret")},
				})
			},
		},
		{
			name: "a name that does not resolve",
			cluster: func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "api.invalid"
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.AddressSource = infrav1.VIPSourceDHCP
			},
			reason:    infrav1.NameResolutionFailedReason,
			names:     "api.invalid",
			inCluster: true,
			fix: func(s *site) {
				c := &infrav1.VCDCluster{ObjectMeta: s.meta("bad")}
				s.g.Expect(s.get(c)).To(Succeed())
				before := client.MergeFrom(c.DeepCopy()) // the manager writes to the object at the same time
				c.Spec.ControlPlaneEndpoint.Host = vip
				c.Spec.ControlPlaneLoadBalancer.KubeVIP = nil
				s.g.Expect(shared.client.Patch(s.t.Context(), c, before)).To(Succeed())
			},
		},
	}
}
