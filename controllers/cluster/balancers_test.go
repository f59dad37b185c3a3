// SPDX-License-Identifier: Apache-2.0

package cluster_test

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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func newBalanced(t *testing.T) *controllertest.Env {
	t.Helper()
	return controllertest.NewBalancedOn(t, vcdsim.K8sTenant())
}

// restart drops the in-memory state of the reconciler.
func restart(w *controllertest.Env) { w.Cluster.ForgetPurge(w.VCDCluster().UID) }

func TestLoadBalancersAreDeletedWithTheirCluster(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.Balance(id, "api",
		&lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")})
	w.Balance("another-cluster", "web", nil)
	w.Expect(w.Owners(id)).NotTo(BeEmpty())
	w.Hurry()

	w.DeleteCluster()

	w.Expect(w.Owners(id)).To(BeEmpty())
	w.Expect(w.Owners("another-cluster")).NotTo(BeEmpty(), "the load balancers of another cluster are kept")
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("LoadBalancersDeleted")))
}

func TestLoadBalancersAreDeletedAfterAMove(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	c := w.VCDCluster()
	c.Status = infrav1.VCDClusterStatus{} // A move does not include them.
	w.Expect(w.Client.Status().Update(w.Ctx, c)).To(Succeed())
	w.Hurry()

	w.DeleteCluster()

	w.Expect(w.Owners(id)).To(BeEmpty())
}

func TestLoadBalancersAreDeletedWithoutTheirNetwork(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.LoseNetworks()
	w.Hurry()

	w.DeleteCluster()

	w.Expect(w.Owners(id)).To(BeEmpty())
}

func TestAnUnknownGatewayWarnsOfOrphanedLoadBalancers(t *testing.T) {
	w := newBalanced(t)
	w.Balance(w.VCDCluster().Spec.InfraID, "web", nil)
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.EdgeGatewayIDs = nil })
	w.LoseNetworks()
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
	w.Later(48 * time.Hour)
	w.Expect(w.IsClusterGone()).To(BeFalse())
	w.LeaveBalancers()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("LoadBalancersNotDeleted"),
		ContainSubstring("network nodes"))))
}

func TestLoadBalancersOnAFormerGatewayAreDeletedToo(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	const other = "urn:vcloud:gateway:00000000-0000-4000-8000-000000000000"
	w.Expect(w.VCDCluster().Spec.RecordedState.EdgeGatewayIDs).To(Equal([]string{w.Gateway}))
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.EdgeGatewayIDs = []string{other} })
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDCluster().Spec.RecordedState.EdgeGatewayIDs).To(Equal([]string{other, w.Gateway}), "the former gateway is kept")
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("EdgeGatewayChanged")))
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)

	w.Expect(w.Owners(id)).To(BeEmpty(), "a deleted gateway keeps nothing on the other one")
	w.Hurry()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue(), "and its deletion is proved")
}

func TestLoadBalancersAreDeletedDespiteManagerRestarts(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "DELETE /cloudapi/1.0.0/loadBalancer/pools*",
		Status:    http.StatusInternalServerError,
		Count:     1,
	})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Eventually(func() (metav1.ConditionStatus, error) {
		_, err := w.ReconcileCluster()
		c := conditions.Get(w.VCDCluster(), infrav1.LoadBalancersDeletedCondition)
		if c == nil {
			return "", err
		}
		return c.Status, err
	}, controllertest.Patience, "5ms").Should(Equal(metav1.ConditionUnknown), "the result in VCD is unknown")

	restart(w) // The state after a restart.
	w.Hurry()

	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Owners(id)).To(BeEmpty())
}

func TestLoadBalancersRecreatedByTheCloudControllerManagerAreDeletedToo(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.WaitingForFinalCheckReason)
	w.Expect(w.Owners(id)).To(BeEmpty())

	w.Balance(id, "web", nil)
	w.Later(balancers.Afterlife)
	w.Eventually(func() []loadbalancer.Owner { _ = w.IsClusterGone(); return w.Owners(id) }, controllertest.Patience,
		"5ms").Should(BeEmpty())
	w.Expect(w.IsClusterGone()).To(BeFalse(), "it may do so once more")
	w.Expect(conditions.GetReason(w.VCDCluster(),
		infrav1.LoadBalancersDeletedCondition)).To(Equal(infrav1.WaitingForFinalCheckReason))

	w.Later(3 * balancers.Afterlife)
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Owners(id)).To(BeEmpty())
}

func TestARestartBeforeTheLastCheckRepeatsTheCheck(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*infrav1.VCDCluster)
	}{
		{"after the waiting time of the former manager", nil},
		{
			"after the waiting time of a new deletion, if the former manager's clock was far ahead",
			func(c *infrav1.VCDCluster) {
				c.Spec.RecordedState.LoadBalancersRemovedAt = &metav1.Time{Time: time.Now().Add(time.Hour)}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			id := w.VCDCluster().Spec.InfraID
			w.Balance(id, "web", nil)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
			w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.WaitingForFinalCheckReason)
			w.Expect(w.Owners(id)).To(BeEmpty())
			if c := w.VCDCluster(); tt.spoil != nil {
				tt.spoil(c)
				w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			}

			restart(w) // The state after a restart.
			w.Expect(w.IsClusterGone()).To(BeFalse())
			w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.WaitingForFinalCheckReason)
			w.Balance(id, "web", nil) // The cloud controller manager still runs.
			w.Later(2 * balancers.Afterlife)

			w.Eventually(func() []loadbalancer.Owner { _ = w.IsClusterGone(); return w.Owners(id) }, controllertest.Patience,
				"5ms").Should(BeEmpty())
			w.Expect(w.IsClusterGone()).To(BeFalse(), "it may do so once more")
			w.Later(4 * balancers.Afterlife)
			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
		})
	}
}

func TestNothingIsRemovedBeforeTheRemovalIsRecorded(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	sound := w.Client
	w.Cluster.Client = interceptor.NewClient(sound.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption,
		) error {
			data, err := patch.Data(obj)
			if err == nil && strings.Contains(string(data), "loadBalancersRemovedAt") {
				return errors.New("etcd is away")
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})

	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
	w.Expect(w.Owners(id)).NotTo(BeEmpty())

	w.Cluster.Client = sound
	w.Hurry()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Owners(id)).To(BeEmpty())
}

// TestAnInvisibleRuleIsNotForgotten deletes the records of a cluster's DNAT rules manually, while the manager cannot
// see the rules.
func TestAnInvisibleRuleIsNotForgotten(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kinds []loadbalancer.Kind
		lists []string
	}{
		{name: "although the virtual services are gone", kinds: []loadbalancer.Kind{lb.KindService}, lists: []string{"edgeGateways/nat/rules"}},
		{
			name:  "although nothing else is visible",
			kinds: []loadbalancer.Kind{lb.KindService, lb.KindPool, lb.KindSet},
			lists: []string{"edgeGateways/nat/rules", "applicationPortProfiles"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			id := w.VCDCluster().Spec.InfraID
			w.Balance(id, "web",
				&lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")})
			c := w.VCDCluster()
			c.Spec.LoadBalancer.ArmMode = infrav1.ArmModeOneArm
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.ByHand(id, tt.kinds...)
			for _, list := range tt.lists {
				w.Sim.Faults().Add(vcdsim.Fault{
					Operation: "GET /cloudapi/1.0.0/" + list + "*",
					User:      "capvcd",
					Status:    http.StatusForbidden,
				})
			}
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
			w.Expect(conditions.GetMessage(w.VCDCluster(),
				infrav1.LoadBalancersDeletedCondition)).To(ContainSubstring("Organization vDC Gateway: View NAT"))

			w.Sim.Faults().Clear()
			w.Later(intervals.Remedy) // It is retried.
			w.Eventually(func(g Gomega) {
				_, err := w.ReconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(w.Owners(id)).To(BeEmpty())
			}, controllertest.Patience, "5ms").Should(Succeed())
			w.Hurry()
			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.Owners(id)).To(BeEmpty())
		})
	}
}

// TestLoadBalancersAreNeverAbandonedAfterATimeout prevents the removal of load balancers for days.
func TestLoadBalancersAreNeverAbandonedAfterATimeout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  vcdsim.Fault
		status metav1.ConditionStatus
		text   string // in the event, when a user keeps them
	}{
		{
			name:   "while the gateway is invisible in VCD",
			fault:  vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/edgeGateways*", Status: http.StatusForbidden},
			status: metav1.ConditionFalse,
			text:   "not all can be listed",
		},
		{
			name:   "while VCD does not let them be removed",
			fault:  vcdsim.Fault{Operation: "DELETE /cloudapi/1.0.0/loadBalancer/*", Status: http.StatusForbidden},
			status: metav1.ConditionFalse,
			text:   "virtual-service ",
		},
		{
			name:   "while VCD does not respond to their requests",
			fault:  vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/edgeGateways*", Status: http.StatusServiceUnavailable},
			status: metav1.ConditionUnknown,
			text:   "not all can be listed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			id := w.VCDCluster().Spec.InfraID
			w.Balance(id, "web", nil)
			w.Sim.Faults().Add(tt.fault)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			for _, later := range []time.Duration{0, time.Hour, 48 * time.Hour} {
				w.Later(later)
				restart(w) // A restart changes nothing.
				w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
				w.Expect(w.IsClusterGone()).To(BeFalse())
			}
			c := conditions.Get(w.VCDCluster(), infrav1.LoadBalancersDeletedCondition)
			w.Expect(c.Status).To(Equal(tt.status))
			w.Expect(c.Message).To(ContainSubstring(infrav1.KeepLoadBalancersAnnotation + "=true"))
			w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("LoadBalancersNotDeleted")))

			w.LeaveBalancers()
			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("Warning"),
				ContainSubstring("marked with its ID "+id), ContainSubstring(tt.text))))
		})
	}
}

// TestLoadBalancersWaitThroughAnOutage makes VCD unresponsive for longer than any timeout, with a restart in the
// middle.
func TestLoadBalancersWaitThroughAnOutage(t *testing.T) {
	w := newBalanced(t)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web", nil)
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Expect(w.IsClusterGone()).To(BeFalse())
	w.Later(48 * time.Hour)
	restart(w)
	w.Expect(w.IsClusterGone()).To(BeFalse())
	w.Sim.Faults().Clear()

	w.Hurry()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(w.Owners(id)).To(BeEmpty())
}

func TestAUserCanKeepLoadBalancersDuringAnOutage(t *testing.T) {
	w := newBalanced(t)
	w.Balance(w.VCDCluster().Spec.InfraID, "web", nil)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
	w.LeaveBalancers()

	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("Warning"),
		ContainSubstring("LoadBalancersNotDeleted"), ContainSubstring(w.Gateway))))
}

// A noReader fails all reads with an unclassified error.
type noReader struct{ client.Reader }

func (noReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("out of order")
}

func TestAUserCanKeepEverythingDespiteFailures(t *testing.T) {
	w := newBalanced(t)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Cluster.Identities.Secrets = nil
	w.Cluster.Identities.Live = noReader{}
	_, err := w.ReconcileCluster()
	w.Expect(err).To(MatchError(ContainSubstring("out of order")))
	w.LeaveBalancers()
	keepVApp(w)

	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("Warning"),
		ContainSubstring("LoadBalancersNotDeleted"), ContainSubstring("out of order"))))
}

// hideGateways revokes the right to view edge gateways.
func hideGateways(w *controllertest.Env) {
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/edgeGateways*", Status: http.StatusForbidden})
}

func TestWithoutOwnedLoadBalancersNoRightIsRequired(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*infrav1.VCDCluster)
	}{
		{
			"without a cloud controller manager",
			func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider.Mode = infrav1.CloudProviderNone
			},
		},
		{
			"with a cloud controller manager managed by the user",
			func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
			},
		},
		{
			"with load balancers that were never enabled",
			func(c *infrav1.VCDCluster) {
				c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerDisabled
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			c := w.VCDCluster()
			tt.change(c)
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			hideGateways(w)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

			w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("Warning"),
				ContainSubstring("LoadBalancersNotDeleted"), ContainSubstring("may remain"))))
		})
	}
}

func TestTheDeletionWaitsForLoadBalancersThatWereOnceAllowed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*infrav1.VCDCluster)
	}{
		{
			"even if they were disabled since",
			func(c *infrav1.VCDCluster) {
				c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerDisabled
			},
		},
		{
			"even if the cloud controller manager was left to the user since",
			func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newBalanced(t)
			c := w.VCDCluster()
			c.Spec.RecordedState.LoadBalancersAllowed = ptr.To(true)
			tt.change(c)
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			hideGateways(w)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)

			w.Expect(w.IsClusterGone()).To(BeFalse())
		})
	}
}

// TestVisibleLoadBalancersOfTheUserAreDeleted deletes a cluster whose load balancers were created by another cloud
// controller manager with the cluster's ID.
func TestVisibleLoadBalancersOfTheUserAreDeleted(t *testing.T) {
	w := newBalanced(t)
	c := w.VCDCluster()
	id := c.Spec.InfraID
	c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Balance(id, "web", nil)
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "DELETE /cloudapi/1.0.0/loadBalancer/*",
		Status:    http.StatusForbidden,
	})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
	w.Expect(w.IsClusterGone()).To(BeFalse(), "the deletion waits for visible load balancers")

	w.Sim.Faults().Clear()
	w.Later(intervals.Remedy)
	w.Eventually(func() []loadbalancer.Owner { _ = w.IsClusterGone(); return w.Owners(id) }, controllertest.Patience,
		"5ms").Should(BeEmpty())
	w.Hurry()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())
}

// TestLoadBalancersAreGoneWithADeletedGateway force-deletes the gateway of a cluster.
func TestLoadBalancersAreGoneWithADeletedGateway(t *testing.T) {
	model := vcdsim.K8sTenant()
	vdc := &model.Orgs[1].VDCs[0]
	another := vdc.EdgeGateways[0]
	another.Name = "another"
	another.Uplinks = nil
	vdc.EdgeGateways = append(slices.Clone(vdc.EdgeGateways), another)
	w := controllertest.NewBalancedOn(t, model)
	id := w.VCDCluster().Spec.InfraID
	w.Balance(id, "web",
		&lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")})
	w.LoseNetworks()
	w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteGateway(w.Gateway) })
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
	w.Expect(w.Profiles(id)).NotTo(BeEmpty(), "application port profiles belong to the organization")

	w.Hurry()
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(w.Profiles(id)).To(BeEmpty())
}
