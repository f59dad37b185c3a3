// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
)

func TestAnEmptyListOfVMsProvesNothing(t *testing.T) {
	t.Parallel()
	s, f, machines := hostage(t)
	s.quiet()
	since := len(s.Requests())

	f.set(empty)

	s.noneIsGone(machines...)
	s.g.Expect(s.State().VMs).To(HaveLen(3))
	s.g.Expect(simsite.Writes(s.Simulator, since)).To(BeEmpty(), "VCD was written to because of an empty list")
	f.set(honest)
	s.survives(machines)
}

func TestRowsThatShiftBetweenPagesProveNothing(t *testing.T) {
	t.Parallel()
	s, f, machines := hostage(t)
	s.quiet()
	since := len(s.Requests())

	f.set(shifting)

	s.noneIsGone(machines...)
	s.unsure(machines[0])
	s.g.Expect(simsite.Writes(s.Simulator, since)).To(BeEmpty(), "VCD was written to because of a list that is not complete")
	f.set(honest)
	s.survives(machines)
}
