// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// pool creates a pool of the in-cluster provider, and returns a reference to it.
func (s *site) pool(kind, name, namespace, addresses, gateway string) infrav1.IPPoolReference {
	s.t.Helper()
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	s.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
		"kind":       kind,
		"metadata":   metadata,
		"spec":       map[string]any{"addresses": []any{addresses}, "prefix": int64(24), "gateway": gateway},
	}})
	return infrav1.IPPoolReference{Name: name, Kind: kind, APIGroup: "ipam.cluster.x-k8s.io"}
}

func TestNodesGetAddressesFromTheInClusterProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	nodes := s.pool("InClusterIPPool", "nodes", s.namespace, "192.168.100.121-192.168.100.122", "192.168.100.1")
	storage := s.pool("GlobalInClusterIPPool", "storage-"+s.namespace, "", "10.20.0.201-10.20.0.209", "10.20.0.1")
	s.ready(s.cluster("pooled"))
	withPools := func(m *infrav1.VCDMachine) {
		m.Spec.Networks = []infrav1.NetworkSpec{
			{Name: "nodes", AddressSource: infrav1.AddressIPAM, PoolRefs: []infrav1.IPPoolReference{nodes}},
			{Name: "storage", AddressSource: infrav1.AddressIPAM, PoolRefs: []infrav1.IPPoolReference{storage}},
		}
	}

	first := s.machine("pooled", "pooled-0", withPools)
	second := s.machine("pooled", "pooled-1", withPools)
	s.ready(first)
	s.ready(second)
	third := s.machine("pooled", "pooled-2", withPools)
	s.g.Eventually(func() (string, error) { return s.state(third, infrav1.AddressesClaimedCondition) }, timeout,
		"100ms").Should(And(ContainSubstring(infrav1.PoolExhaustedReason), ContainSubstring("spec.networks[0].poolRefs[0]")))
	s.g.Expect(s.State().VMs).To(HaveLen(2), "no VM is created for a machine without an address")
	s.deleteMachine("pooled-0")
	s.ready(third)

	s.g.Expect(s.get(third)).To(Succeed())
	s.g.Expect(third.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{
		Type:    clusterv1.MachineInternalIP,
		Address: first.Status.NICs[0].Address,
	}), "the address of the deleted machine")
	for _, vm := range s.State().VMs {
		s.g.Expect(vm.NICs).To(HaveEach(HaveField("Mode", "MANUAL")))
	}
	s.deleteMachine("pooled-1")
	s.deleteMachine("pooled-2")
	s.deleteCluster("pooled")
	s.empty()
	claims := &ipamv1.IPAddressClaimList{}
	addresses := &ipamv1.IPAddressList{}
	s.g.Eventually(func(g Gomega) {
		g.Expect(shared.client.List(t.Context(), claims, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(shared.client.List(t.Context(), addresses, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(claims.Items).To(BeEmpty())
		g.Expect(addresses.Items).To(BeEmpty())
	}, timeout, "100ms").Should(Succeed())
}
