// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// proofTime is longer than the proof that something is gone: two checks, a minute apart.
const proofTime = 75 * time.Second

// newFrontedSite returns a site with a front, and the three ready machines of its cluster "hostage".
func newFrontedSite(t *testing.T) (*site, *front, []*infrav1.VCDMachine) {
	t.Helper()
	s := newBareSite(t, shared.replica)
	f := s.newFront(t)
	s.identify()
	s.cluster("hostage")
	var machines []*infrav1.VCDMachine
	for i := range 3 {
		machines = append(machines, s.machine("hostage", fmt.Sprintf("hostage-%d", i)))
	}
	for _, m := range machines {
		s.ready(m)
	}
	return s, f, machines
}

// trigger triggers a reconcile of an object.
func (s *site) trigger(obj client.Object) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"test.example.com/look":%q}}}`,
		time.Now().Format(time.RFC3339Nano))
	s.g.Eventually(func() error { // A webhook may be unavailable for a moment.
		err := shared.client.Patch(s.t.Context(), obj.DeepCopyObject().(client.Object),
			client.RawPatch(types.MergePatchType, []byte(patch)))
		return client.IgnoreNotFound(err)
	}, timeout, "250ms").Should(Succeed())
}

// expectNoneGone triggers reconciles of machines repeatedly, for longer than a proof takes. No machine may be deleted
// or reported as gone.
func (s *site) expectNoneGone(machines ...*infrav1.VCDMachine) {
	s.t.Helper()
	s.g.Consistently(func(g Gomega) {
		for _, m := range machines {
			s.trigger(m)
			g.Expect(s.get(m)).To(Succeed(), "%s is gone", m.Name)
			for _, c := range m.Status.Conditions {
				g.Expect(c.Reason).NotTo(Equal(infrav1.VMNotFoundReason), "%s: %s", m.Name, c.Message)
			}
			machine := &clusterv1.Machine{ObjectMeta: s.meta(m.Name)}
			g.Expect(s.get(machine)).To(Succeed(), "Machine %s is gone", m.Name)
		}
	}, proofTime, "5s").Should(Succeed())
}

// waitUntilUnknown waits until the Ready condition of a machine is Unknown, with a message.
func (s *site) waitUntilUnknown(m *infrav1.VCDMachine) {
	s.t.Helper()
	s.g.Eventually(func() (string, error) {
		s.trigger(m)
		return s.state(m, clusterv1.ReadyCondition)
	}, timeout, "2s").Should(And(HavePrefix(string(metav1.ConditionUnknown)+" "), MatchRegexp(`: .{20}`)))
}

func TestRightsWithdrawnDuringDeletion(t *testing.T) {
	t.Parallel()
	s, f, machines := newFrontedSite(t)

	f.set(empty)
	for _, operation := range []string{
		"* /api/vApp/vm", "* /api/vApp/vm/*/*", "* /api/vApp/vm/*/*/*",
		"* /api/vApp/vapp", "* /api/vApp/vapp/*/*",
	} {
		s.Faults().Add(vcdsim.Fault{Operation: operation, User: "capvcd", Status: http.StatusForbidden})
	}
	leaving := machines[0]
	s.g.Expect(shared.client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: s.meta(leaving.Name)})).To(Succeed())

	s.expectNoneGone(machines...)
	s.waitUntilUnknown(leaving)
	s.g.Expect(s.State().VMs).To(HaveLen(3))

	s.Faults().Clear()
	f.set(unchanged)
	s.deleteMachine(leaving.Name)
	s.g.Expect(s.State().VMs).To(HaveLen(2))
	s.expectHealthyAndDelete(machines[1:])
}

// expectHealthyAndDelete waits until machines are ready, and deletes them and their cluster.
func (s *site) expectHealthyAndDelete(machines []*infrav1.VCDMachine) {
	s.t.Helper()
	for _, m := range machines {
		s.g.Eventually(func() (string, error) {
			s.trigger(m)
			return s.state(m, clusterv1.ReadyCondition)
		}, timeout, "2s").Should(HavePrefix("True"))
	}
	s.deleteAll(machines)
}

// deleteAll deletes machines and the cluster, and checks that no VMs and vApps remain.
func (s *site) deleteAll(machines []*infrav1.VCDMachine) {
	s.t.Helper()
	for _, m := range machines {
		s.g.Expect(client.IgnoreNotFound(shared.client.Delete(s.t.Context(),
			&clusterv1.Machine{ObjectMeta: s.meta(m.Name)}))).To(Succeed())
	}
	for _, m := range machines {
		s.g.Eventually(func() error { return s.get(m) }, longTimeout, "250ms").ShouldNot(Succeed(), "%s still exists",
			m.Name)
	}
	s.deleteCluster("hostage")
	s.empty()
}
