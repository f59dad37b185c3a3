package move

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// travellingPools are what the cluster claims from. Their label takes them along.
const travellingPools = `
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

// TestClaimedAddressesMoveAlong moves a cluster all of whose addresses are claimed from pools: each claim keeps its
// address, none is assigned twice, and all are free again after the cluster.
func TestClaimedAddressesMoveAlong(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two management clusters, and -short is set")
	}
	log.SetLogger(klog.Background())
	s := newScene(t)
	s.createFromPools(s.home)
	s.available(s.home, 2)
	claimed, vms, before := s.claimed(s.home), s.vms(), len(s.site.Simulator.Requests())
	s.Expect(claimed).To(HaveLen(3), "two nodes and the virtual IP")

	s.move(s.home, s.away)
	s.available(s.away, 2)

	s.Expect(s.claimed(s.away)).To(Equal(claimed))
	s.nothingAt(s.home)
	s.Expect(s.claimed(s.home)).To(BeEmpty())
	s.Expect(s.vms()).To(Equal(vms))
	s.Expect(s.writes(before)).To(BeEmpty(), "changes in VCD by a move")

	s.scale(s.away, 2)
	s.available(s.away, 3)
	grown := s.claimed(s.away)
	s.Expect(grown).To(HaveLen(4))
	for claim, address := range claimed {
		s.Expect(grown).To(HaveKeyWithValue(claim, address))
	}

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	s.Expect(s.away.client.Delete(t.Context(), cluster)).To(Succeed())
	s.Eventually(func() bool { return s.exists(s.away, &clusterv1.ClusterList{}) }, patience, "250ms").Should(BeFalse())
	s.Eventually(func() map[string]string { return s.claimed(s.away) }, patience, "250ms").Should(BeEmpty())
	s.Expect(s.site.Left()).To(BeEmpty(), "left in the simulated VCD")
}

// createFromPools creates the pools and a cluster of flavour ipam.
func (s *scene) createFromPools(h cluster) {
	s.t.Helper()
	manifest, err := h.Clusterctl(s.t.Context(), "generate", "cluster", name, "--infrastructure=vcd:"+version,
		"--flavor=ipam", "--target-namespace="+namespace, "--kubernetes-version="+programs.KubernetesVersion,
		"--control-plane-machine-count=1", "--worker-machine-count=1")
	s.Expect(err).NotTo(HaveOccurred())
	for _, objects := range []string{travellingPools, string(manifest)} {
		_, err = h.Kubectl(s.t.Context(), strings.NewReader(objects), "apply", "-f", "-")
		s.Expect(err).NotTo(HaveOccurred())
	}
}

// claimed returns the address of each claim. No two have one, and there is no other.
func (s *scene) claimed(h cluster) map[string]string {
	s.t.Helper()
	claims, addresses := &ipamv1.IPAddressClaimList{}, &ipamv1.IPAddressList{}
	for _, list := range []client.ObjectList{claims, addresses} {
		s.Expect(h.client.List(s.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	}
	of, claimOf := map[string]string{}, map[string]string{}
	for _, a := range addresses.Items {
		s.Expect(claimOf).NotTo(HaveKey(a.Spec.Address), "%s has it, too", claimOf[a.Spec.Address])
		of[a.Spec.ClaimRef.Name], claimOf[a.Spec.Address] = a.Spec.Address, a.Spec.ClaimRef.Name
	}
	s.Expect(len(of)).To(BeNumerically("<=", len(claims.Items)), "addresses without a claim: %v", of)
	return of
}
