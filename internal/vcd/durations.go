// SPDX-License-Identifier: Apache-2.0

package vcd

import "time"

// durations is how long tasks took, by operation: the last two of each. It predicts, together with their progress,
// when running tasks end. A wrong prediction costs little: see [Tasks.untilNextPoll].
type durations map[string][2]time.Duration

// learn notes how long a task took, by VCD's own clock.
func (d durations) learn(t Task) {
	if t.State != TaskSucceeded || t.Started.IsZero() || t.Ended.IsZero() {
		return
	}
	d[t.Operation] = [2]time.Duration{t.Ended.Sub(t.Started), d[t.Operation][0]}
}

// end guesses when a running task ends: after the usual time of its operation, if there is one, else as its progress
// goes on. It is zero if nothing is known.
func (d durations) end(t *followedTask) time.Time {
	last := d[t.task.Operation]
	if shorter, longer := min(last[0], last[1]), max(last[0], last[1]); shorter > 0 && longer-shorter < time.Second {
		return t.since.Add(longer)
	}
	if p := t.task.Progress; p > 0 && p < 100 && t.asked.After(t.since) {
		return t.since.Add(t.asked.Sub(t.since) * 100 / time.Duration(p))
	}
	return time.Time{}
}
