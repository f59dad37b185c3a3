// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// lastRetry is the longest delay after a failure. It doubles each time.
const lastRetry = 10 * time.Minute

// A backoff delays each step that failed. The zero value delays none.
type backoff struct{ byStep map[step]delay }

type delay struct {
	out    phases.Result // why the step failed
	count  int
	until  time.Time
	wished infrav1.VCDMachineSpec // by users, when the step failed
}

// failed delays a step that failed. A change of what users wish ends the delay.
func (b *backoff) failed(what step, out phases.Result, now time.Time, wished infrav1.VCDMachineSpec) phases.Result {
	count := 0
	if last, ok := b.byStep[what]; ok && equality.Semantic.DeepEqual(last.wished, wished) {
		count = last.count
	}
	if b.byStep == nil {
		b.byStep = map[step]delay{}
	}
	out.After = min(session.FirstRetry<<min(count, 10), lastRetry)
	b.byStep[what] = delay{out: out, count: count + 1, until: now.Add(out.After), wished: *wished.DeepCopy()}
	return out
}

// failing returns why a step failed while it is delayed.
func (b *backoff) failing(what step, now time.Time, wished infrav1.VCDMachineSpec) phases.Result {
	last, ok := b.byStep[what]
	if !ok || !now.Before(last.until) || !equality.Semantic.DeepEqual(last.wished, wished) {
		return phases.Done
	}
	last.out.After = last.until.Sub(now)
	return last.out
}

// succeeded ends the delay of a step, and of those that did the same in another way.
func (b *backoff) succeeded(what step) {
	delete(b.byStep, what)
	if creates(what) {
		maps.DeleteFunc(b.byStep, func(other step, _ delay) bool { return creates(other) })
	}
}

// creating reports whether a request that was to create the VM failed.
func (b *backoff) creating() bool {
	_, added := b.byStep[stepAdd]
	_, composed := b.byStep[stepCompose]
	return added || composed
}
