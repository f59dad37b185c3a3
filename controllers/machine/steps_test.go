// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// desired is the spec that users set.
var desired = infrav1.VCDMachineSpec{Template: "ubuntu"}

func TestFailuresAreRetriedWithBackoff(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	m := &backoff{}
	out := phases.Fail(0, "TaskFailed", "no")
	changed := infrav1.VCDMachineSpec{Template: "debian"}

	g.Expect(m.failed(stepAdd, out, now, desired).After).To(Equal(intervals.FirstRetry))
	g.Expect(m.failing(stepAdd, now.Add(intervals.FirstRetry/2),
		desired).After).To(Equal(intervals.FirstRetry - intervals.FirstRetry/2))
	g.Expect(m.failing(stepAdd, now.Add(intervals.FirstRetry), desired)).To(Equal(phases.Done))
	g.Expect(m.failed(stepAdd, out, now, desired).After).To(Equal(2 * intervals.FirstRetry))
	g.Expect(m.failing(stepAdd, now, changed)).To(Equal(phases.Done), "a changed spec causes a retry")
	for range 20 {
		m.failed(stepAdd, out, now, desired)
	}
	g.Expect(m.failing(stepAdd, now, desired).After).To(Equal(lastRetry))

	m.succeeded(stepAdd)
	g.Expect(m.failing(stepAdd, now, desired)).To(Equal(phases.Done))
}

func TestEachStepHasItsOwnBackoff(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	m := &backoff{}
	out := phases.Fail(0, "TaskFailed", "no")

	for range 3 {
		m.failed(stepGrow, out, now, desired)
		m.failed(stepClear, out, now, desired)
	}

	g.Expect(m.failing(stepGrow, now, desired).After).To(Equal(4 * intervals.FirstRetry))
	g.Expect(m.failing(stepClear, now, desired).After).To(Equal(4 * intervals.FirstRetry))
	g.Expect(m.creating()).To(BeFalse())

	m.failed(stepCompose, out, now, desired)
	m.failed(stepAdd, out, now, desired)
	g.Expect(m.creating()).To(BeTrue())
	m.succeeded(stepAdd)
	g.Expect(m.creating()).To(BeFalse(), "the VM was created, possibly by another request")
}
