// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// pooled is an environment whose cluster requests its virtual IPs from pools.
type pooled struct {
	*controllertest.Env

	pools []*controllertest.Pool
}

func newPooled(t *testing.T, pools ...*controllertest.Pool) *pooled {
	t.Helper()
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].Networks[0].Second = &vcdsim.SecondSubnet{Gateway: netip.MustParsePrefix("fd00:100::1/64")}
	objects := make([]client.Object, 0, len(pools))
	for _, pool := range pools {
		objects = append(objects, pool.Object())
	}
	return &pooled{controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, objects...), pools}
}

// ask sets pools in the VCDCluster.
func (w *pooled) ask(first, second []*controllertest.Pool) {
	refs := func(pools []*controllertest.Pool) (refs []infrav1.IPPoolReference) {
		for _, pool := range pools {
			refs = append(refs, pool.IPPoolReference)
		}
		return refs
	}
	withEndpoint(w.Env, "", infrav1.KubeVIPEndpoint{
		AddressSource:     infrav1.VIPSourceIPAM,
		PoolRefs:          refs(first),
		SecondaryPoolRefs: refs(second),
	})
}

// eventually runs the reconciler and the pool providers until a condition has a reason.
func (w *pooled) eventually(condition, reason string) {
	w.Eventually(func(g Gomega) {
		for _, pool := range w.pools {
			g.Expect(pool.Serve(w.Ctx, w.Client)).To(Succeed())
		}
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.VCDCluster(), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, controllertest.Patience, "5ms").Should(Succeed())
}

// assignedAddresses returns the addresses of claims, and the names of all claims.
func (w *pooled) assignedAddresses() (addresses, claims []string) {
	for _, pool := range w.pools {
		w.Expect(pool.Serve(w.Ctx, w.Client)).To(Succeed())
	}
	a := &ipamv1.IPAddressList{}
	c := &ipamv1.IPAddressClaimList{}
	w.Expect(w.Client.List(w.Ctx, a)).To(Succeed())
	w.Expect(w.Client.List(w.Ctx, c)).To(Succeed())
	for _, address := range a.Items {
		addresses = append(addresses, address.Spec.Address)
	}
	for _, claim := range c.Items {
		claims = append(claims, claim.Name)
	}
	return addresses, claims
}

// exhausted returns a pool that reports that it has no addresses left.
func exhausted(name string) (*controllertest.Pool, client.Object) {
	pool := controllertest.NewPool(name, 24, "")
	object := pool.Object().(*unstructured.Unstructured)
	object.Object["status"] = map[string]any{"ipAddresses": map[string]any{"free": int64(0)}}
	return pool, object
}

func TestAVirtualIPFromAPoolIsKeptAndReleased(t *testing.T) {
	vips := controllertest.NewPool("vips", 24, "", "192.168.100.210", "192.168.100.211")
	w := newPooled(t, vips)
	w.ask(w.pools, nil)

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.210"))
	w.Expect(manifest(w.Env)).To(ContainSubstring("192.168.100.210"))
	_, claims := w.assignedAddresses()
	w.Expect(claims).To(Equal([]string{"c1-vip"}))

	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	w.Expect(claim.Spec.ClusterName).To(Equal(controllertest.ClusterName))
	w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	addresses, _ := w.assignedAddresses()
	w.Expect(addresses).To(Equal([]string{"192.168.100.210"}), "held, although the claim is deleted")

	w.DeleteCluster()
	addresses, claims = w.assignedAddresses()
	w.Expect(addresses).To(BeEmpty())
	w.Expect(claims).To(BeEmpty())
}

func TestTheNextPoolIsUsedWhenOneIsExhausted(t *testing.T) {
	full, object := exhausted("full")
	spare := controllertest.NewPool("spare", 24, "", "192.168.100.220")
	w := newPooled(t, spare)
	missing := controllertest.NewPool("missing", 24, "")
	w.Expect(w.Client.Create(w.Ctx, object)).To(Succeed())
	w.pools = append(w.pools, full)
	w.ask([]*controllertest.Pool{full, missing, spare}, nil)

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.220"))
	_, claims := w.assignedAddresses()
	w.Expect(claims).To(Equal([]string{"c1-vip-3"}), "the claims of the other pools are gone")
}

func TestAPoolMustNotContainAddressesOfServices(t *testing.T) {
	w := newPooled(t, controllertest.NewPool("vips", 24, "", "192.168.100.220"))
	w.ask(w.pools, nil)
	c := w.VCDCluster()
	c.Spec.LoadBalancer.KubeVIP = &infrav1.KubeVIPServices{
		AddressRanges: []infrav1.AddressRange{{StartIP: "192.168.100.210", EndIP: "192.168.100.230"}},
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.eventually(infrav1.EndpointReadyCondition, infrav1.VIPInUseReason)

	w.Expect(messageOf(w.Env)).To(ContainSubstring("virtual IP 192.168.100.220 is in spec.loadBalancer.kubeVIP.addressRanges"))
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(BeEmpty())
}

func TestWithoutAnyAddressTheFirstPoolIsNamed(t *testing.T) {
	full, object := exhausted("full")
	missing := controllertest.NewPool("missing", 24, "")
	w := newPooled(t)
	w.Expect(w.Client.Create(w.Ctx, object)).To(Succeed())
	w.pools = append(w.pools, full)
	w.ask([]*controllertest.Pool{full, missing}, nil)

	w.eventually(infrav1.EndpointReadyCondition, infrav1.PoolExhaustedReason)
	w.Expect(messageOf(w.Env)).To(ContainSubstring("spec.controlPlaneLoadBalancer.kubeVIP.poolRefs[0]"))

	full.Addresses = []string{"192.168.100.230"}
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.230"))
}

func TestAPoolWithoutAResponseIsSkippedAfterATimeout(t *testing.T) {
	silent := controllertest.NewPool("silent", 24, "")
	spare := controllertest.NewPool("spare", 24, "", "192.168.100.220")
	w := newPooled(t, silent, spare)
	w.ask(w.pools, nil)
	w.eventually(infrav1.EndpointReadyCondition, infrav1.WaitingForIPAddressClaimReason)
	_, claims := w.assignedAddresses()
	w.Expect(claims).To(Equal([]string{"c1-vip"}))

	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * time.Minute))
	w.Expect(w.Client.Update(w.Ctx, claim)).To(Succeed())

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.220"))
}

func TestBothFamiliesComeFromPools(t *testing.T) {
	four := controllertest.NewPool("four", 24, "", "192.168.100.210")
	six := controllertest.NewPool("six", 64, "", "fd00:100::c8")
	w := newPooled(t, four, six)
	w.ask(w.pools[:1], w.pools[1:])

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.VCDCluster().Status.VirtualIPs).To(Equal([]string{"192.168.100.210", "fd00:100::c8"}))
	w.Expect(manifest(w.Env)).To(ContainSubstring("192.168.100.210,fd00:100::c8"))
	before := w.VCDCluster().ResourceVersion
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(before))
	w.DeleteCluster()
	addresses, claims := w.assignedAddresses()
	w.Expect(append(addresses, claims...)).To(BeEmpty())
}

func TestTwoPoolsOfOneFamilyAreRejected(t *testing.T) {
	vips := controllertest.NewPool("vips", 24, "", "192.168.100.210")
	more := controllertest.NewPool("more", 24, "", "192.168.100.211")
	w := newPooled(t, vips, more)
	w.ask(w.pools[:1], w.pools[1:])

	w.eventually(infrav1.EndpointReadyCondition, infrav1.VIPFamilyConflictReason)

	w.Expect(messageOf(w.Env)).To(ContainSubstring("spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs"))
	w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty())
}

func TestAnUnusablePoolAddressIsRejected(t *testing.T) {
	vips := controllertest.NewPool("vips", 24, "", "10.9.9.9")
	w := newPooled(t, vips)
	w.ask(w.pools, nil)

	w.eventually(infrav1.EndpointReadyCondition, infrav1.VIPOutsideNetworkReason)

	w.Expect(messageOf(w.Env)).To(ContainSubstring("delete the IPAddressClaims"))
	vips.Addresses = []string{"192.168.100.210"}
	w.Expect(w.Client.Delete(w.Ctx, &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")})).To(Succeed())
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.210"))
}

func TestAClaimIsAdoptedAgainAfterARestore(t *testing.T) {
	vips := controllertest.NewPool("vips", 24, "", "192.168.100.210")
	w := newPooled(t, vips)
	w.ask(w.pools, nil)
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	claim.OwnerReferences[0].UID = "uid-before-the-restore"
	w.Expect(w.Client.Update(w.Ctx, claim)).To(Succeed())

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(metav1.IsControlledBy(claim, w.VCDCluster())).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())
}

// TestAClusterWithACustomIDGetsItsVirtualIPFromAPool sets the ID in the manifest.
func TestAClusterWithACustomIDGetsItsVirtualIPFromAPool(t *testing.T) {
	w := newPooled(t, controllertest.NewPool("vips", 24, "", "192.168.100.210"))
	w.ask(w.pools, nil)
	pinID(w.Env)

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.210"))
}

func TestTheSecondVirtualIPIsKeptAfterItsClaimIsDeleted(t *testing.T) {
	four := controllertest.NewPool("four", 24, "", "192.168.100.210")
	six := controllertest.NewPool("six", 64, "", "fd00:100::c8")
	w := newPooled(t, four, six)
	w.ask(w.pools[:1], w.pools[1:])
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip-second")}

	w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
	w.assignedAddresses()
	for range 3 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(manifest(w.Env)).To(ContainSubstring("192.168.100.210,fd00:100::c8"))
	addresses, _ := w.assignedAddresses()
	w.Expect(addresses).To(ConsistOf("192.168.100.210", "fd00:100::c8"), "held, although the claim is deleted")
	w.DeleteCluster()
	addresses, claims := w.assignedAddresses()
	w.Expect(append(addresses, claims...)).To(BeEmpty())
}

// withoutStatus returns a cluster after a move, which drops the status.
func (w *pooled) withoutStatus() {
	c := w.VCDCluster()
	c.Status = infrav1.VCDClusterStatus{}
	w.Expect(w.Client.Status().Update(w.Ctx, c)).To(Succeed())
}

func TestTheSecondVirtualIPSurvivesAMoveWithoutItsClaim(t *testing.T) {
	four := controllertest.NewPool("four", 24, "", "192.168.100.210")
	six := controllertest.NewPool("six", 64, "", "fd00:100::c8", "fd00:100::c9")
	w := newPooled(t, four, six)
	w.ask(w.pools[:1], w.pools[1:])
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for range 2 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}
	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip-second")}
	w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
	w.assignedAddresses()

	w.withoutStatus()
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(manifest(w.Env)).To(ContainSubstring("192.168.100.210,fd00:100::c8"))
	w.Expect(w.VCDCluster().Status.VirtualIPs).To(Equal([]string{"192.168.100.210", "fd00:100::c8"}))
	w.Expect(conditions.GetReason(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(Equal(infrav1.AddressClaimLostReason))
	w.Expect(messageOf(w.Env)).To(ContainSubstring("is held until this VCDCluster is deleted"))
}

func TestAVirtualIPWithoutAPoolIsReported(t *testing.T) {
	w := newPooled(t, controllertest.NewPool("vips", 24, "", "192.168.100.210"))
	w.ask(w.pools, nil)
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Client.Delete(w.Ctx, &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")})).To(Succeed())
	addresses := &ipamv1.IPAddressList{}
	w.Expect(w.Client.List(w.Ctx, addresses)).To(Succeed())
	for i := range addresses.Items { // A restore without IPAM objects.
		addresses.Items[i].Finalizers = nil
		w.Expect(w.Client.Update(w.Ctx, &addresses.Items[i])).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.Client.Delete(w.Ctx, &addresses.Items[i]))).To(Succeed())
	}
	w.withoutStatus()

	w.eventually(infrav1.EndpointReadyCondition, infrav1.AddressClaimLostReason)

	w.Expect(conditions.IsTrue(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(BeTrue(), "the cluster is ready")
	w.Expect(messageOf(w.Env)).To(And(ContainSubstring("192.168.100.210"), ContainSubstring("c1-vip"),
		ContainSubstring("Exclude the address from the pool")))
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)
	before := w.VCDCluster().ResourceVersion
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(before), "no changes are pending")
}

func TestAnAddressIsReleasedIfTheIDWasSetAfterItsClaim(t *testing.T) {
	for name, passes := range map[string]int{"deleted at once": 0, "deleted later": 2} {
		t.Run(name, func(t *testing.T) {
			w := newPooled(t, controllertest.NewPool("vips", 24, "", "10.9.9.9"))
			w.ask(w.pools, nil)
			w.eventually(infrav1.EndpointReadyCondition, infrav1.VIPOutsideNetworkReason)

			pinID(w.Env)
			for range passes {
				_, err := w.ReconcileCluster()
				w.Expect(err).NotTo(HaveOccurred())
			}
			if passes > 0 {
				claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")}
				w.Expect(w.Client.Delete(w.Ctx, claim)).To(Succeed())
			}
			w.DeleteCluster()

			addresses, claims := w.assignedAddresses()
			w.Expect(append(addresses, claims...)).To(BeEmpty())
		})
	}
}

// TestAnUnusedAddressIsReleased restarts the manager after it held the address of the second pool, but before it
// deleted the claim of the first. The first claim then gets an address, too.
func TestAnUnusedAddressIsReleased(t *testing.T) {
	late := controllertest.NewPool("late", 24, "")
	w := newPooled(t, late, controllertest.NewPool("spare", 24, "", "192.168.100.220"))
	w.ask(w.pools, nil)
	w.eventually(infrav1.EndpointReadyCondition, infrav1.WaitingForIPAddressClaimReason)
	claim := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("c1-vip")}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	claim.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * time.Minute))
	w.Expect(w.Client.Update(w.Ctx, claim)).To(Succeed())
	w.Cluster.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("the manager died")
		},
	})
	w.Eventually(func(g Gomega) {
		w.assignedAddresses()
		_, err := w.ReconcileCluster()
		g.Expect(err).To(MatchError(ContainSubstring("the manager died")))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Cluster.Client = w.Client
	late.Addresses = []string{"192.168.100.230"}
	w.assignedAddresses()
	w.eventually(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.230"))
	addresses, _ := w.assignedAddresses()
	w.Expect(addresses).To(Equal([]string{"192.168.100.230"}))
}
