// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestAReferencedObjectIsDeletedManually deletes an object that was just created before the object that references it.
// VCD then responds with "forbidden", which does not mean a missing right.
func TestAReferencedObjectIsDeletedManually(t *testing.T) {
	for _, tc := range []struct {
		name    string
		desired lb.Desired
		deleted string
		before  loadbalancer.Kind
	}{
		{"the IP set of a pool", desired(service("c1", "web"), 80), setsDocument, lb.KindPool},
		{"the pool of a virtual service", desired(service("c1", "web"), 80), poolsDocument, lb.KindService},
		{"the port profile of a rule", oneArm(service("c1", "web"), 80), "1.0.0/applicationPortProfiles", lb.KindRule},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			d := tc.desired
			there := w.documents(tc.deleted)
			for _, step := range w.steps(&d) {
				if step.Kind != tc.before {
					w.run(step)
					continue
				}
				for _, id := range w.documents(tc.deleted)[len(there):] {
					w.sim.Edit(func(e *vcdsim.Editor) { w.Expect(e.DeleteDocument(id)).To(BeTrue()) })
				}
				w.Expect(w.driver.Run(t.Context(), w.gateway, step)).To(MatchError(loadbalancer.ErrBusy))
				break
			}

			plan := w.converge(&d)

			w.Expect(plan.Done()).To(BeTrue())
			w.Expect(w.driver.Capabilities(t.Context(), w.gateway)).To(HaveField("MemberSets", true),
				"the right to IP sets was not revoked")
			w.Expect(w.documents(tc.deleted)).To(HaveLen(len(there) + 1))
		})
	}
}

func TestAManuallyReleasedFloatingIPIsAllocatedAgain(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	d := desired(service("c1", "web"), 80)
	address := w.converge(&d).Status.Addresses
	mine := func() []vcdsim.IPAllocation {
		return slices.DeleteFunc(w.sim.State().Model.IPSpaces[0].Allocations,
			func(a vcdsim.IPAllocation) bool { return !strings.Contains(a.Description, d.Owner.UID) })
	}
	w.Expect(mine()).To(HaveLen(1))
	w.sim.Edit(func(e *vcdsim.Editor) {
		p := &e.Model.IPSpaces[0]
		p.Allocations = slices.DeleteFunc(p.Allocations,
			func(a vcdsim.IPAllocation) bool { return strings.Contains(a.Description, d.Owner.UID) })
	})
	w.restart()

	w.Expect(w.converge(&d).Status.Addresses).To(Equal(address))

	w.Expect(mine()).To(ConsistOf(HaveField("Value", address[0].String())))
}
