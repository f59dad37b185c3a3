// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestRightsAreReadOnceAndMayBeUnknown(t *testing.T) {
	to := newTarget(t)
	simOnly(t, to)
	g := NewWithT(t)
	ctx := t.Context()
	s := to.session(t)

	g.Expect(s.MayHave(ctx, vcd.RightConsolidate)).To(BeTrue())
	g.Expect(s.MayHave(ctx, "Role: Create, Edit, Delete, or Copy")).To(BeFalse())
	g.Expect(to.sim.Counters()).To(HaveKeyWithValue("GET /cloudapi/1.0.0/roles/rights", 1))

	s.Refresh()
	to.sim.Faults().Add(vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/roles/rights", Status: 403, Count: 1})
	g.Expect(s.MayHave(ctx, "Role: Create, Edit, Delete, or Copy")).To(BeTrue(), "the user cannot view them")

	s.Refresh()
	to.sim.Faults().Add(vcdsim.Fault{Operation: "GET /cloudapi/1.0.0/roles/rights", Status: 503})
	_, err := s.MayHave(ctx, vcd.RightConsolidate)
	g.Expect(err).To(MatchError(vcd.ErrUnavailable))
}
