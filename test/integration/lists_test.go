// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
)

func TestAnEmptyListOfVMsProvesNothing(t *testing.T) {
	t.Parallel()
	s, f, machines := newFrontedSite(t)
	s.quiet()
	since := len(s.Requests())

	f.set(empty)

	s.expectNoneGone(machines...)
	s.g.Expect(s.State().VMs).To(HaveLen(3))
	s.g.Expect(simsite.Writes(s.Simulator, since)).To(BeEmpty(), "writes to VCD because of an empty list")
	f.set(unchanged)
	s.expectHealthyAndDelete(machines)
}

func TestRowsThatShiftBetweenPagesProveNothing(t *testing.T) {
	t.Parallel()
	s, f, machines := newFrontedSite(t)
	s.quiet()
	since := len(s.Requests())

	f.set(shifting)

	s.expectNoneGone(machines...)
	s.waitUntilUnknown(machines[0])
	s.g.Expect(simsite.Writes(s.Simulator, since)).To(BeEmpty(), "writes to VCD because of an incomplete list")
	f.set(unchanged)
	s.expectHealthyAndDelete(machines)
}
