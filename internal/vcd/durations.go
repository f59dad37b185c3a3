// SPDX-License-Identifier: Apache-2.0

package vcd

import "time"

// durations holds the durations of the last two tasks of each operation. Together with the progress of running tasks,
// they predict when those tasks finish. A wrong prediction costs little: see [Tasks.untilNextPoll].
type durations map[string][2]time.Duration

// learn records the duration of a task by the clock of VCD.
func (d durations) learn(t Task) {
	if t.State != TaskSucceeded || t.Started.IsZero() || t.Ended.IsZero() {
		return
	}
	d[t.Operation] = [2]time.Duration{t.Ended.Sub(t.Started), d[t.Operation][0]}
}

// end predicts when a running task finishes: from the usual duration of its operation if there is one, otherwise from
// its progress. It returns the zero time if nothing is known.
func (d durations) end(t *followedTask) time.Time {
	last := d[t.task.Operation]
	if shorter, longer := min(last[0], last[1]), max(last[0], last[1]); shorter > 0 && longer-shorter < time.Second {
		return t.since.Add(longer)
	}
	if p := t.task.Progress; p > 0 && p < 100 && t.polledAt.After(t.since) {
		return t.since.Add(t.polledAt.Sub(t.since) * 100 / time.Duration(p))
	}
	return time.Time{}
}
