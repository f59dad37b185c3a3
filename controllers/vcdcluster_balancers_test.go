package controllers

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A balanced world is one with an edge gateway, on which a test does what cloud controller managers do.
type balanced struct {
	*world

	gateway string
	driver  *edge.Driver
}

func newBalanced(t *testing.T) *balanced {
	t.Helper()
	return newBalancedOn(t, vcdsim.K8sTenant())
}

func newBalancedOn(t *testing.T, model vcdsim.Model) *balanced {
	t.Helper()
	w := &balanced{world: newWorldWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model})}
	w.gateway = vcdsim.URN("gateway", w.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	session := w.admin(t)
	w.driver = edge.New(func(context.Context) (*vcd.Session, error) { return session, nil }, edge.Options{})
	w.ready()
	return w
}

// balance makes a load balancer for a Service of a cluster.
func (w *balanced) balance(cluster, name string, oneArm *lb.Range) {
	d := lb.Desired{
		Owner: lb.Owner{Cluster: cluster, Namespace: "shop", Name: name, UID: "uid-of-" + cluster + "-" + name}, Families: []lb.Family{lb.IPv4}, OneArm: oneArm,
		Members: []netip.Addr{netip.MustParseAddr("192.168.100.11")},
		Listeners: []lb.Listener{
			{Name: "http", Protocol: lb.TCP, Application: lb.L4, Port: 80, NodePort: 30080}, {Name: "admin", Protocol: lb.TCP, Application: lb.L4, Port: 81, NodePort: 30081},
		},
	}
	can, err := w.driver.Capabilities(w.ctx, w.gateway)
	w.Expect(err).NotTo(HaveOccurred())
	query := lb.Query{Owner: d.Owner, Fresh: true}
	for range 20 {
		seen, err := w.driver.Observe(w.ctx, w.gateway, query)
		w.Expect(err).NotTo(HaveOccurred())
		plan := lb.Make(d, seen, can)
		w.Expect(plan.Refusals).To(BeEmpty())
		if plan.Done() {
			return
		}
		query.Facts |= plan.Needs
		d.Intent = append(d.Intent, plan.Intent...)
		for _, step := range plan.Steps {
			w.Expect(w.driver.Run(w.ctx, w.gateway, step)).To(Succeed())
		}
	}
	w.Expect(name).To(BeEmpty(), "a load balancer that is never done")
}

// owners are those of a cluster who have something on the gateway.
func (w *balanced) owners(cluster string) []lb.Owner {
	found, err := w.driver.Owners(w.ctx, w.gateway, cluster)
	w.Expect(err).NotTo(HaveOccurred())
	return found
}

// byHand deletes what a cluster has of some kinds.
func (w *balanced) byHand(cluster string, kinds ...lb.Kind) {
	can, err := w.driver.Capabilities(w.ctx, w.gateway)
	w.Expect(err).NotTo(HaveOccurred())
	for _, owner := range slices.Backward(w.owners(cluster)) {
		seen, err := w.driver.Observe(w.ctx, w.gateway, lb.Query{Owner: owner, Fresh: true, Facts: lb.Forwardings | lb.Certificates | lb.Firewall})
		w.Expect(err).NotTo(HaveOccurred())
		for _, step := range lb.Make(lb.Desired{Owner: owner, Absent: true}, seen, can).Steps {
			if slices.Contains(kinds, step.Kind) {
				w.Expect(w.driver.Run(w.ctx, w.gateway, step)).To(Succeed())
			}
		}
	}
}

// hurry lets the clock of the reconciler go so much faster that nobody waits long for the last look; but not so fast that an hour, after which
// it gives up, may pass between two passes on a busy machine.
func (w *balanced) hurry() {
	began := time.Now()
	w.cluster.Now = func() time.Time { return began.Add(60 * time.Since(began)) }
}

// loseNetworks deletes the networks of the cluster's VDC.
func (w *balanced) loseNetworks() {
	w.sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Networks = nil })
	w.Expect(w.owners(w.vcdCluster().Spec.InfraID)).NotTo(BeEmpty())
}

func TestLoadBalancersGoWithTheirCluster(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	w.balance(id, "api", &lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")})
	w.balance("somebody-else", "web", nil)
	w.Expect(w.owners(id)).NotTo(BeEmpty())
	w.hurry()

	w.deleteCluster()

	w.Expect(w.owners(id)).To(BeEmpty())
	w.Expect(w.owners("somebody-else")).NotTo(BeEmpty(), "another cluster's stay")
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("LoadBalancersDeleted")))
}

func TestLoadBalancersGoThoughTheClusterJustMovedHere(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	c := w.vcdCluster()
	c.Status = infrav1.VCDClusterStatus{} // A move takes none along.
	w.Expect(w.client.Status().Update(w.ctx, c)).To(Succeed())
	w.hurry()

	w.deleteCluster()

	w.Expect(w.owners(id)).To(BeEmpty())
}

func TestLoadBalancersGoThoughTheirNetworkIsGone(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	w.loseNetworks()
	w.hurry()

	w.deleteCluster()

	w.Expect(w.owners(id)).To(BeEmpty())
}

func TestAClusterWhoseGatewayNobodyKnowsSaysThatLoadBalancersMayBeLeft(t *testing.T) {
	w := newBalanced(t)
	w.balance(w.vcdCluster().Spec.InfraID, "web", nil)
	c := w.vcdCluster()
	delete(c.Annotations, infrav1.EdgeGatewaysAnnotation) // As former versions left it.
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.loseNetworks()
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersRemainReason)

	w.cluster.Now = func() time.Time { return time.Now().Add(refusedPatience) }
	w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
	w.Expect(w.eventTexts()).To(ContainElement(And(ContainSubstring("LoadBalancersRemain"), ContainSubstring("network nodes"))))
}

func TestLoadBalancersGoFromAFormerGatewayToo(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	former := w.vcdCluster().Annotations[infrav1.EdgeGatewaysAnnotation]
	w.Expect(former).To(Equal(w.gateway))
	c := w.vcdCluster()
	c.Annotations[infrav1.EdgeGatewaysAnnotation] = "urn:vcloud:gateway:00000000-0000-4000-8000-000000000000"
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	_, err := w.reconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.vcdCluster().Annotations[infrav1.EdgeGatewaysAnnotation]).To(HaveSuffix(",%s", w.gateway), "the former one stays")
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("EdgeGatewayChanged")))
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersRemainReason)

	w.Expect(w.owners(id)).To(BeEmpty(), "a gateway that is gone keeps nothing on the other one")
}

func TestLoadBalancersGoThoughTheManagerIsKilled(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	w.sim.Faults().Add(vcdsim.Fault{Operation: "DELETE /cloudapi/1.0.0/loadBalancer/pools*", Status: http.StatusInternalServerError, Count: 1})
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.Eventually(func() (metav1.ConditionStatus, error) {
		_, err := w.reconcileCluster()
		c := conditions.Get(w.vcdCluster(), infrav1.LoadBalancersDeletedCondition)
		if c == nil {
			return "", err
		}
		return c.Status, err
	}, patience, "5ms").Should(Equal(metav1.ConditionUnknown), "nobody knows what VCD did")

	w.cluster.teardowns.forget(w.vcdCluster().UID) // What a new manager knows.
	w.hurry()

	w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
	w.Expect(w.owners(id)).To(BeEmpty())
}

func TestWhatACloudControllerManagerMakesAgainBeforeItDiesGoesToo(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LastLookReason)
	w.Expect(w.owners(id)).To(BeEmpty())

	w.balance(id, "web", nil)
	w.later(afterlife)
	w.Eventually(func() []lb.Owner { _ = w.isClusterGone(); return w.owners(id) }, patience, "5ms").Should(BeEmpty())
	w.Expect(w.isClusterGone()).To(BeFalse(), "it may do so once more")
	w.Expect(conditions.GetReason(w.vcdCluster(), infrav1.LoadBalancersDeletedCondition)).To(Equal(infrav1.LastLookReason))

	w.later(3 * afterlife)
	w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
	w.Expect(w.owners(id)).To(BeEmpty())
}

func TestAManagerThatDiesBeforeTheLastLookLeavesItToTheNextOne(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*infrav1.VCDCluster)
	}{
		{"after as long as the former manager would have", nil},
		{"after as long as if it just happened, where a person spoiled the note", func(c *infrav1.VCDCluster) {
			c.Annotations[infrav1.LoadBalancersRemovedAnnotation] = "yesterday"
		}},
		{"after as long as if it just happened, where the former manager's clock was far ahead", func(c *infrav1.VCDCluster) {
			c.Annotations[infrav1.LoadBalancersRemovedAnnotation] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			id := w.vcdCluster().Spec.InfraID
			w.balance(id, "web", nil)
			w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
			w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LastLookReason)
			w.Expect(w.owners(id)).To(BeEmpty())
			if c := w.vcdCluster(); tt.spoil != nil {
				tt.spoil(c)
				w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
			}

			w.cluster.teardowns.forget(w.vcdCluster().UID) // What a new manager knows.
			w.Expect(w.isClusterGone()).To(BeFalse())
			w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LastLookReason)
			w.balance(id, "web", nil) // The cloud controller manager still works.
			w.later(2 * afterlife)

			w.Eventually(func() []lb.Owner { _ = w.isClusterGone(); return w.owners(id) }, patience, "5ms").Should(BeEmpty())
			w.Expect(w.isClusterGone()).To(BeFalse(), "it may do so once more")
			w.later(4 * afterlife)
			w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
		})
	}
}

func TestNothingIsRemovedBeforeThatIsNoted(t *testing.T) {
	w := newBalanced(t)
	id := w.vcdCluster().Spec.InfraID
	w.balance(id, "web", nil)
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	sound := w.client
	w.cluster.Client = interceptor.NewClient(sound.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(obj)
			if err == nil && strings.Contains(string(data), infrav1.LoadBalancersRemovedAnnotation) {
				return errors.New("etcd is away")
			}
			return c.Patch(ctx, obj, patch, opts...) //nolint:wrapcheck // a pretended API server
		},
	})

	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersRemainReason)
	w.Expect(w.owners(id)).NotTo(BeEmpty())

	w.cluster.Client = sound
	w.hurry()
	w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
	w.Expect(w.owners(id)).To(BeEmpty())
}

// TestARuleThatMayNotBeSeenIsNotForgotten deletes by hand what would tell of the DNAT rules of a cluster, from a manager that may not see them.
func TestARuleThatMayNotBeSeenIsNotForgotten(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kinds []lb.Kind
		lists []string
	}{
		{"though the virtual services are gone", []lb.Kind{lb.KindService}, []string{"edgeGateways/nat/rules"}},
		{"though nothing else is seen", []lb.Kind{lb.KindService, lb.KindPool, lb.KindSet}, []string{"edgeGateways/nat/rules", "applicationPortProfiles"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			id := w.vcdCluster().Spec.InfraID
			w.balance(id, "web", &lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")})
			c := w.vcdCluster()
			c.Spec.LoadBalancer.OneArm = &infrav1.OneArmSpec{}
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
			w.byHand(id, tt.kinds...)
			for _, list := range tt.lists {
				w.sim.Faults().Add(vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/" + list + "*", User: "capvcd", Status: http.StatusForbidden})
			}
			w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

			w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersRemainReason)
			w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.LoadBalancersDeletedCondition)).To(ContainSubstring("Organization vDC Gateway: View NAT"))

			w.sim.Faults().Clear()
			w.cluster.Now = func() time.Time { return time.Now().Add(refusedPatience / 2) } // It is tried again, and not yet given up.
			w.Eventually(func(g Gomega) {
				_, err := w.reconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(w.owners(id)).To(BeEmpty())
			}, patience, "5ms").Should(Succeed())
			w.hurry()
			w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
			w.Expect(w.owners(id)).To(BeEmpty())
		})
	}
}

func TestAGatewayThatCannotBeSeenKeepsNoClusterForEver(t *testing.T) {
	t.Parallel()
	hidden := vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/edgeGateways*", Status: http.StatusForbidden}
	tests := []struct {
		name string
		mode infrav1.CloudProviderMode
		help func(*balanced) // what ends the waiting
	}{
		{"a while is waited for somebody to grant the right", infrav1.CloudProviderManaged, func(w *balanced) {
			w.cluster.Now = func() time.Time { return time.Now().Add(refusedPatience) }
		}},
		{"a person ends it", infrav1.CloudProviderManaged, func(w *balanced) {
			c := w.vcdCluster()
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.KeepLoadBalancersAnnotation, "true")
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
		}},
		{"without a cloud controller manager nothing is waited for", infrav1.CloudProviderNone, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			c := w.vcdCluster()
			c.Spec.CloudProvider.Mode = tt.mode
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
			w.sim.Faults().Add(hidden)
			w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

			if tt.help != nil {
				w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersRemainReason)
				tt.help(w)
			}

			w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())
			w.Expect(w.eventTexts()).To(ContainElement(And(ContainSubstring("Warning"), ContainSubstring("LoadBalancersRemain"), ContainSubstring("may be left"))))
		})
	}
}
