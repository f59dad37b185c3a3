// SPDX-License-Identifier: Apache-2.0

package move

import (
	. "github.com/onsi/gomega"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// movedPools are the pools of the addresses of the cluster. Their label makes clusterctl move them.
const movedPools = `
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: nodes, namespace: default, labels: {clusterctl.cluster.x-k8s.io/move: ""}}
spec: {addresses: [192.168.100.100-192.168.100.104], prefix: 24, gateway: 192.168.100.1}
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: virtual-ips, namespace: default, labels: {clusterctl.cluster.x-k8s.io/move: ""}}
spec: {addresses: [192.168.100.230], prefix: 24, gateway: 192.168.100.1}
`

// addressesByClaim returns the allocated addresses by claim, and checks that no two claims have the same address.
func (s *environment) addressesByClaim(h cluster) map[string]string {
	s.t.Helper()
	addresses := &ipamv1.IPAddressList{}
	s.Expect(h.client.List(s.t.Context(), addresses, client.InNamespace(namespace))).To(Succeed())
	of := map[string]string{}
	claimOf := map[string]string{}
	for _, a := range addresses.Items {
		s.Expect(claimOf).NotTo(HaveKey(a.Spec.Address), "claim %s has the same address", claimOf[a.Spec.Address])
		of[a.Spec.ClaimRef.Name] = a.Spec.Address
		claimOf[a.Spec.Address] = a.Spec.ClaimRef.Name
	}
	return of
}
