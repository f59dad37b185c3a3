// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// lastRetry is the longest delay after a failure. The delay doubles with each failure.
const lastRetry = 10 * time.Minute

// A backoff delays the retry of each step that failed. The zero value delays no step.
type backoff struct{ byStep map[step]delay }

type delay struct {
	out     phases.Result // why the step failed
	count   int
	until   time.Time
	desired infrav1.VCDMachineSpec // as set by users, at the time of the failure
}

// failed delays a step that failed, and returns out with the delay. The delays start over when users change the spec.
func (b *backoff) failed(what step, out phases.Result, now time.Time, desired infrav1.VCDMachineSpec) phases.Result {
	count := 0
	if last, ok := b.byStep[what]; ok && equality.Semantic.DeepEqual(last.desired, desired) {
		count = last.count
	}
	if b.byStep == nil {
		b.byStep = map[step]delay{}
	}
	out.After = min(intervals.FirstRetry<<min(count, 10), lastRetry)
	b.byStep[what] = delay{out: out, count: count + 1, until: now.Add(out.After), desired: *desired.DeepCopy()}
	return out
}

// failing returns why a step failed while its retry is delayed; otherwise [phases.Done].
func (b *backoff) failing(what step, now time.Time, desired infrav1.VCDMachineSpec) phases.Result {
	last, ok := b.byStep[what]
	if !ok || !now.Before(last.until) || !equality.Semantic.DeepEqual(last.desired, desired) {
		return phases.Done
	}
	last.out.After = last.until.Sub(now)
	return last.out
}

// last returns why a step last failed, although its retry may no longer be delayed. It returns false if the step has
// not failed since it last succeeded.
func (b *backoff) last(what step) (phases.Result, bool) {
	last, ok := b.byStep[what]
	return last.out, ok
}

// forget ends the delay of a step, as if it had never failed.
func (b *backoff) forget(what step) { delete(b.byStep, what) }

// succeeded ends the delay of a step. If the step creates the VM, it also ends the delays of the other steps that
// create VMs.
func (b *backoff) succeeded(what step) {
	delete(b.byStep, what)
	if creates(what) {
		maps.DeleteFunc(b.byStep, func(other step, _ delay) bool { return creates(other) })
	}
}

// creating reports whether a request to create the VM failed.
func (b *backoff) creating() bool {
	_, added := b.byStep[stepAdd]
	_, composed := b.byStep[stepCompose]
	return added || composed
}
