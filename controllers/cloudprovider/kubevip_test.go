// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// announced enables kube-vip with addresses, and connects the cluster to the network of the site.
func (w *ccmEnv) announced(from, to string, mods ...func(*infrav1.LoadBalancerSpec)) {
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.LoadBalancer.KubeVIP = &infrav1.KubeVIPServices{
			AddressRanges: []infrav1.AddressRange{{StartIP: from, EndIP: to}},
		}
		for _, mod := range mods {
			mod(&c.Spec.LoadBalancer)
		}
	})
	c := w.vcdClusterNow()
	c.Status.OVDCNetwork.ID = networkURN(w)
	w.Expect(w.Client.Status().Update(w.Ctx, c)).To(Succeed())
}

func networkURN(w *ccmEnv) string {
	return vcdsim.URN("network", w.Sim.State().Model.Orgs[1].VDCs[0].Networks[0].ID)
}

// announcer returns the kube-vip DaemonSet to apply, or nil.
func (w *ccmEnv) announcer() *appsv1.DaemonSet {
	for _, u := range w.objects() {
		if u.GetKind() == "DaemonSet" {
			return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName()}}
		}
	}
	return nil
}

func TestKubeVIPIsInstalledWithTheCloudProvider(t *testing.T) {
	w := newCCMEnv(t)
	w.announced("192.168.100.201", "192.168.100.210")

	w.installed()

	w.Expect(w.announcer().Name).To(Equal(kubevip.ServicesName))
	lb := w.configured().LoadBalancer
	w.Expect(lb.KubeVIP).To(Equal(vcdconfig.KubeVIP{AddressRanges: []vcdconfig.AddressRange{{
		StartIP: netip.MustParseAddr("192.168.100.201"),
		EndIP:   netip.MustParseAddr("192.168.100.210"),
	}}}))
	w.Expect(lb.Disabled()).To(BeTrue(), "kube-vip serves Services without a class")
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancersAllowed).To(BeNil())
}

func TestKubeVIPIsRemovedWhenItsFieldIsUnset(t *testing.T) {
	w := newCCMEnv(t)
	w.announced("192.168.100.201", "192.168.100.210")
	w.installed()
	set := w.announcer()
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.KubeVIP = nil })
	w.pass()
	w.apply()
	w.ahead += addon.ApplyPoll
	w.runs()
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))

	w.Expect(w.announcer()).To(BeNil())
	w.Expect(client.IgnoreNotFound(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(set), set))).To(Succeed())
	w.Expect(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(set), set)).NotTo(Succeed())
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("CloudProviderRemoved"), ContainSubstring(kubevip.ServicesName))))
}

func TestTheConditionWaitsForKubeVIPPods(t *testing.T) {
	w := newCCMEnv(t)
	w.announced("192.168.100.201", "192.168.100.210")
	w.Expect(w.pass().Reason).To(Equal(infrav1.CloudProviderApplyingReason))
	w.apply()
	w.runs()
	set := w.announcer()
	setRollout := func(status appsv1.DaemonSetStatus) {
		w.Expect(w.Workload.Get(w.Ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		set.Status = status
		w.Expect(w.Workload.Status().Update(w.Ctx, set)).To(Succeed())
		w.ahead += addon.StartPoll
	}

	setRollout(appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2})
	w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.KubeVIPUnavailableReason),
		HaveField("Message", ContainSubstring(addons.Namespace+"/"+kubevip.ServicesName+" to be available: 2 of 2 updated, 0 available"))))

	setRollout(appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1})
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue))
}

func TestKubeVIPAlongsideVCDLoadBalancers(t *testing.T) {
	w := newCCMEnv(t)
	w.announced("192.168.100.201", "192.168.100.210", func(b *infrav1.LoadBalancerSpec) {
		b.KubeVIP.Class = "example.com/kube-vip"
	})

	w.installed()

	w.Expect(w.configured().LoadBalancer.KubeVIP.Class).To(Equal("example.com/kube-vip"))
	w.Expect(w.configured().LoadBalancer.Disabled()).To(BeFalse())
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancersAllowed).To(HaveValue(BeTrue()))
}

func TestInvalidKubeVIPAddressesAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		want     string
	}{
		"of VMs":            {"192.168.100.20", "192.168.100.30", "overlap the static pool"},
		"of other networks": {"203.0.113.1", "203.0.113.2", "not in one subnet of network nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCCMEnv(t)
			w.announced(tt.from, tt.to)

			got := w.pass()

			w.Expect(got).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", infrav1.LoadBalancerInvalidReason),
				HaveField("Message", And(ContainSubstring(tt.want), ContainSubstring("spec.loadBalancer.kubeVIP.addressRanges")))))
			w.expectNoSecrets()
		})
	}
}

func TestTwoClustersDoNotAnnounceTheSameAddresses(t *testing.T) {
	other := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: controllertest.Namespace,
		Name:      "other",
		UID:       "other",
	}}
	w := newCCMEnv(t, other)
	own := w.vcdClusterNow()
	w.announced("192.168.100.201", "192.168.100.210")
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
	other.Spec.Site = own.Spec.Site
	other.Spec.RecordedState.OVDCNetworkID = networkURN(w)
	other.Spec.LoadBalancer.KubeVIP = &infrav1.KubeVIPServices{
		AddressRanges: []infrav1.AddressRange{{StartIP: "192.168.100.210", EndIP: "192.168.100.220"}},
	}
	w.Expect(w.Client.Update(w.Ctx, other)).To(Succeed())

	w.Expect(w.pass()).To(And(HaveField("Reason", infrav1.LoadBalancerInvalidReason),
		HaveField("Message", ContainSubstring("overlap those of VCDCluster other"))))

	other.Spec.LoadBalancer.KubeVIP.AddressRanges[0].StartIP = "192.168.100.211"
	w.Expect(w.Client.Update(w.Ctx, other)).To(Succeed())
	w.installed()
	other.Spec.LoadBalancer.KubeVIP.AddressRanges[0].StartIP = "192.168.100.210"
	w.Expect(w.Client.Update(w.Ctx, other)).To(Succeed())
	w.Expect(w.pass().Status).To(Equal(metav1.ConditionTrue), "the other cluster is newer")
}
