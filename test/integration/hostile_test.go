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

// hostage returns a site with a front, and a cluster with three ready machines.
func hostage(t *testing.T) (*site, *front, []*infrav1.VCDMachine) {
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

// trigger makes the manager reconcile an object now.
func (s *site) trigger(obj client.Object) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"test.example.com/look":%q}}}`,
		time.Now().Format(time.RFC3339Nano))
	s.g.Eventually(func() error { // A webhook may be unavailable for a moment.
		err := shared.client.Patch(s.t.Context(), obj.DeepCopyObject().(client.Object),
			client.RawPatch(types.MergePatchType, []byte(patch)))
		return client.IgnoreNotFound(err)
	}, patience, "250ms").Should(Succeed())
}

// noneIsGone makes the manager reconcile machines repeatedly, for longer than a proof takes. None may be reported as
// gone.
func (s *site) noneIsGone(machines ...*infrav1.VCDMachine) {
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

// unsure waits until a condition of a machine is Unknown with the reason.
func (s *site) unsure(m *infrav1.VCDMachine) {
	s.t.Helper()
	s.g.Eventually(func() (string, error) {
		s.trigger(m)
		return s.state(m, clusterv1.ReadyCondition)
	}, patience, "2s").Should(And(HavePrefix(string(metav1.ConditionUnknown)+" "), MatchRegexp(`: .{20}`)))
}

func TestRightsWithdrawnDuringDeletion(t *testing.T) {
	t.Parallel()
	s, f, machines := hostage(t)

	f.set(empty)
	for _, operation := range []string{
		"* /api/vApp/vm", "* /api/vApp/vm/*/*", "* /api/vApp/vm/*/*/*",
		"* /api/vApp/vapp", "* /api/vApp/vapp/*/*",
	} {
		s.Faults().Add(vcdsim.Fault{Operation: operation, User: "capvcd", Status: http.StatusForbidden})
	}
	leaving := machines[0]
	s.g.Expect(shared.client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: s.meta(leaving.Name)})).To(Succeed())

	s.noneIsGone(machines...)
	s.unsure(leaving)
	s.g.Expect(s.State().VMs).To(HaveLen(3))

	s.Faults().Clear()
	f.set(honest)
	s.deleteMachine(leaving.Name)
	s.g.Expect(s.State().VMs).To(HaveLen(2))
	s.survives(machines[1:])
}

// survives checks that machines are as healthy as before, and cleans up.
func (s *site) survives(machines []*infrav1.VCDMachine) {
	s.t.Helper()
	for _, m := range machines {
		s.g.Eventually(func() (string, error) {
			s.trigger(m)
			return s.state(m, clusterv1.ReadyCondition)
		}, patience, "2s").Should(HavePrefix("True"))
	}
	s.leave(machines)
}

// leave deletes machines and the cluster. Nothing may be left.
func (s *site) leave(machines []*infrav1.VCDMachine) {
	s.t.Helper()
	for _, m := range machines {
		s.g.Expect(client.IgnoreNotFound(shared.client.Delete(s.t.Context(),
			&clusterv1.Machine{ObjectMeta: s.meta(m.Name)}))).To(Succeed())
	}
	for _, m := range machines {
		s.g.Eventually(func() error { return s.get(m) }, ages, "250ms").ShouldNot(Succeed(), "%s is still there",
			m.Name)
	}
	s.deleteCluster("hostage")
	s.empty()
}
