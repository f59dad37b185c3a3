// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ipam"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A bench has an owner that claims addresses, a pool, and the API server between them.
type bench struct {
	*WithT

	ctx    context.Context //nolint:containedctx // that of the test
	client client.Client
	pool   *controllertest.Pool
	claims ipam.Claims
}

func newBench(t *testing.T, pool *controllertest.Pool, objects ...client.Object) *bench {
	t.Helper()
	t.Parallel()
	owner := &infrav1.VCDMachine{ObjectMeta: controllertest.Meta("m-0")}
	c := controllertest.NewClient(append(objects, owner)...)
	return &bench{
		WithT:  NewWithT(t),
		ctx:    t.Context(),
		client: c,
		pool:   pool,
		claims: ipam.Claims{Client: c, Live: c, Owner: owner, ID: "id-of-m-0", Cluster: controllertest.ClusterName},
	}
}

func nodes(addresses ...string) *controllertest.Pool {
	return controllertest.NewPool("nodes", 24, "10.0.0.1", addresses...)
}

func (b *bench) claim() ipam.Claim {
	return ipam.Claim{Name: "m-0-0-0", Pool: b.pool.IPPoolReference, Field: "spec.networks[0].poolRefs[0]"}
}

// ensure runs the provider, then ensures the claim once.
func (b *bench) ensure(claim ipam.Claim) (ipam.Address, phases.Result) {
	b.Expect(b.pool.Serve(b.ctx, b.client)).To(Succeed())
	address, out, err := b.claims.Ensure(b.ctx, claim)
	b.Expect(err).NotTo(HaveOccurred())
	return address, out
}

// settle ensures the claim until it is done or needs action by a user.
func (b *bench) settle(claim ipam.Claim) (address ipam.Address, out phases.Result) {
	for range 10 {
		if address, out = b.ensure(claim); out == phases.Done || out.IsProblem() {
			break
		}
	}
	return address, out
}

func (b *bench) object(into client.Object) client.Object {
	b.Expect(b.client.Get(b.ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "m-0-0-0"}, into)).
		To(Succeed())
	return into
}

func (b *bench) left() (claims, addresses int) {
	b.Expect(b.pool.Serve(b.ctx, b.client)).To(Succeed())
	c := &ipamv1.IPAddressClaimList{}
	a := &ipamv1.IPAddressList{}
	b.Expect(b.client.List(b.ctx, c)).To(Succeed())
	b.Expect(b.client.List(b.ctx, a)).To(Succeed())
	return len(c.Items), len(a.Items)
}

func TestAClaimSurvivesAMove(t *testing.T) {
	pool := nodes("10.0.0.5")
	b := newBench(t, pool, pool.Object())

	address, out := b.settle(b.claim())

	b.Expect(out).To(Equal(phases.Done))
	b.Expect(address.Addr.String()).To(Equal("10.0.0.5"))
	b.Expect(address.Bits).To(Equal(24))
	b.Expect(address.Gateway.String()).To(Equal("10.0.0.1"))
	claim := b.object(&ipamv1.IPAddressClaim{}).(*ipamv1.IPAddressClaim)
	b.Expect(claim.Spec.ClusterName).To(Equal(controllertest.ClusterName))
	b.Expect(claim.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/cluster-name", controllertest.ClusterName))
	b.Expect(metav1.IsControlledBy(claim, b.claims.Owner)).To(BeTrue())

	b.claims.Owner.SetUID("uid-after-a-restore")
	after, out := b.settle(b.claim())

	b.Expect(out).To(Equal(phases.Done))
	b.Expect(after.Addr).To(Equal(address.Addr))
	b.Expect(metav1.IsControlledBy(b.object(&ipamv1.IPAddressClaim{}), b.claims.Owner)).To(BeTrue())
}

func TestAHeldAddressIsReleasedOnlyByItsOwner(t *testing.T) {
	pool := nodes("10.0.0.5")
	b := newBench(t, pool, pool.Object())
	address, _ := b.settle(b.claim())
	b.Expect(b.claims.Hold(b.ctx, address)).To(Succeed())

	b.Expect(b.client.Delete(b.ctx, b.object(&ipamv1.IPAddressClaim{}))).To(Succeed())

	claims, addresses := b.left()
	b.Expect([]int{claims, addresses}).To(Equal([]int{0, 1}), "the pool revoked the claim, but not the address")
	inUse := b.claim()
	inUse.InUse = true
	_, out := b.ensure(inUse)
	b.Expect(out.Reason).To(Equal(infrav1.AddressClaimLostReason))
	b.Expect(b.claims.Release(b.ctx, "m-0-0-0")).To(Succeed())
	claims, addresses = b.left()
	b.Expect([]int{claims, addresses}).To(Equal([]int{0, 0}))
}

func TestADeletedClaimIsNotReused(t *testing.T) {
	pool := nodes("10.0.0.5", "10.0.0.6")
	b := newBench(t, pool, pool.Object())
	address, _ := b.settle(b.claim())
	b.Expect(b.claims.Hold(b.ctx, address)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.object(&ipamv1.IPAddressClaim{}))).To(Succeed())

	_, out, err := b.claims.Ensure(b.ctx, b.claim())

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(out.Message).To(Equal("Waiting for an earlier IPAddressClaim m-0-0-0 to be deleted"))
	_, out = b.settle(b.claim())
	b.Expect(out).To(Equal(phases.Done), "the address is unused, so another is claimed")
}

func TestChangingThePoolBeforeTheVMExistsReplacesTheClaim(t *testing.T) {
	pool := nodes("10.0.0.5")
	other := controllertest.NewPool("others", 0, "", "10.0.1.5")
	b := newBench(t, pool, pool.Object(), other.Object())
	b.settle(b.claim())

	b.Expect(pool.Serve(b.ctx, b.client)).To(Succeed())
	claim := b.claim()
	claim.Pool = other.IPPoolReference
	_, out := b.ensure(claim)
	b.Expect(out.Message).To(ContainSubstring("Deleting IPAddressClaim m-0-0-0"))
	b.Expect(pool.Serve(b.ctx, b.client)).To(Succeed())
	b.pool = other
	address, out := b.settle(claim)

	b.Expect(out).To(Equal(phases.Done))
	b.Expect(address.Addr.String()).To(Equal("10.0.1.5"))
	b.Expect(address.Bits).To(BeZero(), "the pool has no prefix")
	claims, addresses := b.left()
	b.Expect([]int{claims, addresses}).To(Equal([]int{1, 1}))
}

func TestPoolProblemsAreNamed(t *testing.T) {
	exhausted := nodes()
	full := exhausted.Object().(*unstructured.Unstructured)
	full.Object["status"] = map[string]any{"ipAddresses": map[string]any{"free": int64(0)}}
	elsewhere := nodes()
	elsewhere.Kind = "NoSuchPool"
	for name, tt := range map[string]struct {
		pool    *controllertest.Pool
		objects []client.Object
		reason  string
		words   string
		remedy  string
	}{
		"exhausted": {
			pool:    exhausted,
			objects: []client.Object{full},
			reason:  infrav1.PoolExhaustedReason,
			words:   "ExamplePool nodes has no free address",
			remedy:  "add addresses to it, or set another pool in spec.networks[0].poolRefs[0]",
		},
		"missing": {
			pool:   nodes(),
			reason: infrav1.PoolNotFoundReason,
			words:  "spec.networks[0].poolRefs[0] refers to ExamplePool nodes, which does not exist",
			remedy: "create it, or correct the name",
		},
		"of an unknown kind": {
			pool:   elsewhere,
			reason: infrav1.PoolNotFoundReason,
			words:  "spec.networks[0].poolRefs[0] refers to a NoSuchPool.ipam.example.com",
			remedy: "install its IPAM provider, or correct kind and apiGroup",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tt.pool, tt.objects...)

			_, out := b.settle(b.claim())

			b.Expect(out.Reason).To(Equal(tt.reason))
			b.Expect(out.Message).To(And(ContainSubstring(tt.words), ContainSubstring(tt.remedy)))
			b.Expect(out.After).To(BeNumerically(">", 0), "it recovers by itself")
		})
	}
}

func TestAForeignClaimIsNotTouched(t *testing.T) {
	pool := nodes("10.0.0.5")
	foreign := &ipamv1.IPAddressClaim{ObjectMeta: controllertest.Meta("m-0-0-0")}
	b := newBench(t, pool, pool.Object(), foreign)

	_, out := b.settle(b.claim())
	b.Expect(out.Reason).To(Equal(infrav1.NameConflictReason))
	b.Expect(b.claims.Release(b.ctx, "m-0-0-0")).To(Succeed())

	b.object(&ipamv1.IPAddressClaim{})
}

func TestReleaseIncludesClaimsMissingFromTheCache(t *testing.T) {
	pool := nodes("10.0.0.5")
	b := newBench(t, pool, pool.Object())
	address, _ := b.settle(b.claim())
	b.Expect(b.claims.Hold(b.ctx, address)).To(Succeed())
	behind := b.claims
	behind.Client = emptyCache{b.client}

	b.Expect(behind.Release(b.ctx, "m-0-0-0")).To(Succeed())

	claims, addresses := b.left()
	b.Expect([]int{claims, addresses}).To(Equal([]int{0, 0}))
}

// emptyCache is a cache that has not seen any object yet.
type emptyCache struct{ client.Client }

func (emptyCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(ipamv1.GroupVersion.WithResource("ipaddressclaims").GroupResource(), key.Name)
}
