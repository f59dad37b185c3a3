// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
)

const (
	// tasksPerQuery limits the tasks of one query. More tasks are queried in rotation.
	tasksPerQuery = 60
	// missesUntilUnknown is how often a task must be missing from the result before it counts as unknown.
	missesUntilUnknown = 2
	// triesUntilUnexplained is how often the reason of a failure is requested before the failure is reported without
	// it.
	triesUntilUnexplained = 5
	// endedKept is how long a finished task is kept for its follower. Most followers forget it at once, but they may be
	// deleted before, such as a machine whose finalizer was removed.
	endedKept = 24 * time.Hour
)

// Tasks follows the tasks of a session. One query polls all running tasks.
type Tasks struct {
	client  *api.Client
	clock   Clock
	every   time.Duration // polling interval
	metrics metrics.Site

	mu       sync.Mutex
	followed map[string]*followedTask // by key
	cancel   context.CancelFunc       // cancels the running poller; nil: no poller
	lastPoll time.Time
	next     int // index of the first task in the next round
	usual    durations
}

func newTasks(c *api.Client, clock Clock, every time.Duration, m metrics.Site) *Tasks {
	return &Tasks{
		client:   c,
		clock:    clock,
		every:    every,
		metrics:  m,
		followed: map[string]*followedTask{},
		usual:    durations{},
	}
}

type followedTask struct {
	key         string
	task        Task
	wake        func()
	waits       bool      // a goroutine waits for wake
	misses      int       // how often in a row it was missing from the result
	failedReads int       // how often reading the reason of its failure failed
	since       time.Time // start of following
	polledAt    time.Time // time of the last query
}

// Follow polls the task, together with all others of the session, until it has finished. Then it calls wake once in a
// new goroutine. The key identifies the follower, such as the UID of a machine. A key follows one task at a time.
func (ts *Tasks) Follow(key string, t Task, wake func()) {
	ts.follow(&followedTask{key: key, task: t, wake: wake})
}

func (ts *Tasks) follow(f *followedTask) {
	switch {
	case f.task.ID == "" && f.task.State != TaskSucceeded:
		f.task.State = TaskUnknown // cannot be queried, and would break the query of all others
	case f.task.State == "":
		f.task.State = TaskRunning
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := ts.clock.Now()
	maps.DeleteFunc(ts.followed, func(_ string, old *followedTask) bool {
		return old.task.State != TaskRunning && now.Sub(old.since) > endedKept
	})
	delete(ts.followed, f.key)
	f.since = now
	if f.task.State != TaskRunning {
		ts.note(f, f.task)
	}
	ts.followed[f.key] = f
	if f.task.State == TaskRunning && ts.cancel == nil {
		ctx, cancel := context.WithCancel(login.Unattended(context.Background()))
		ts.cancel = cancel
		go ts.run(ctx)
	}
}

// Task returns the task that key follows. It sends no request.
func (ts *Tasks) Task(key string) (Task, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if f, ok := ts.followed[key]; ok {
		return f.task, true
	}
	return Task{}, false
}

// Wait waits until a task has finished, polled together with all others of the session, and returns the finished task.
// The state is [TaskUnknown] if VCD no longer has the task or the session was closed. If timeout fires first, Wait
// returns the task in its current state.
func (ts *Tasks) Wait(ctx context.Context, t Task, timeout <-chan time.Time) (Task, error) {
	if t.State == TaskSucceeded {
		return t, nil
	}
	ended := make(chan struct{})
	key := fmt.Sprintf("wait %p", ended)
	ts.follow(&followedTask{key: key, task: t, wake: func() { close(ended) }, waits: true}) //nolint:contextcheck // the poller is shared and outlives the call
	defer ts.Forget(key)
	select {
	case <-ended:
	case <-timeout:
	case <-ctx.Done():
		return t, ctx.Err()
	}
	now, ok := ts.Task(key)
	if !ok {
		t.State = TaskUnknown
		return t, nil
	}
	return now, nil
}

// Forget stops following the task of key.
func (ts *Tasks) Forget(key string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.followed, key)
}

// running returns the number of running tasks. Several keys may follow the same task.
func (ts *Tasks) running() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ids := map[string]bool{}
	for _, t := range ts.followed {
		if t.task.State == TaskRunning {
			ids[t.task.ID] = true
		}
	}
	return len(ids)
}

// countEnded counts a finished task in the metrics, unless another follower has already done so. The caller holds the
// lock.
func (ts *Tasks) countEnded(t Task) {
	for _, other := range ts.followed {
		if other.task.ID == t.ID && other.task.State != TaskRunning {
			return
		}
	}
	ts.metrics.TaskEnded(t.Operation, taskResult(t.State), t.Started, t.Ended)
}

// wakeLocked wakes the follower of a finished task. The caller holds the lock, so wakeLocked must not block.
func (ts *Tasks) wakeLocked(t *followedTask) {
	if wake := t.wake; wake != nil {
		t.wake = nil
		go wake()
	}
}

// stop stops the poller and forgets all tasks. It only wakes calls of [Tasks.Wait].
func (ts *Tasks) stop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, f := range ts.followed {
		if f.waits {
			ts.wakeLocked(f)
		}
	}
	clear(ts.followed)
	if ts.cancel != nil {
		ts.cancel()
		ts.cancel = nil
	}
}

// run polls while there are running tasks.
func (ts *Tasks) run(ctx context.Context) {
	for {
		select {
		case <-ts.clock.After(ts.untilNextPoll()):
		case <-ctx.Done():
			return
		}
		batch, more := ts.batch(ctx)
		if !more {
			return
		}
		err := ts.poll(ctx, batch)
		if errors.Is(err, ErrUnauthorized) {
			ts.giveUp(ctx)
			return
		}
		if err != nil {
			select {
			case <-ts.clock.After(RetryAfter(err)):
			case <-ctx.Done():
				return
			}
		}
	}
}

// giveUp stops polling because VCD rejects the login. The results of the tasks are unknown: their followers must check
// them, with another session if necessary.
func (ts *Tasks) giveUp(ctx context.Context) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ctx.Err() != nil {
		return // replaced
	}
	ts.cancel()
	ts.cancel = nil
	for _, t := range ts.followed {
		if t.task.State == TaskRunning {
			ended := t.task
			ended.State = TaskUnknown
			ts.note(t, ended)
		}
	}
}

// untilNextPoll returns the time until the next poll. It keeps the polling interval, except that the first poll after a
// pause follows soon, because many tasks are short. If a task is expected to finish shortly after the interval, the
// poll waits for it. Otherwise its end would be noticed late.
func (ts *Tasks) untilNextPoll() time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	every := ts.every
	now := ts.clock.Now()
	next := now.Add(max(every/4, every-now.Sub(ts.lastPoll)))
	latest := next.Add(every / 2)
	best := next
	for _, t := range ts.followed {
		if t.task.State != TaskRunning {
			continue
		}
		end := ts.usual.end(t).Add(every / 16)
		if end.After(next) && !end.After(latest) && (best.Equal(next) || end.Before(best)) {
			best = end
		}
	}
	return best.Sub(now)
}

// batch returns the IDs of the tasks in the next round, or false if no tasks are left. It also returns false for a
// replaced poller, whose context is canceled, because that must not act for its successor.
func (ts *Tasks) batch(ctx context.Context) ([]string, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ctx.Err() != nil {
		return nil, false
	}
	var ids []string
	for _, t := range ts.followed {
		if t.task.State == TaskRunning {
			ids = append(ids, t.task.ID)
		}
	}
	if len(ids) == 0 {
		ts.cancel()
		ts.cancel = nil
		return nil, false
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ts.lastPoll = ts.clock.Now()
	for _, t := range ts.followed {
		t.polledAt = ts.lastPoll
	}
	if len(ids) <= tasksPerQuery {
		return ids, true
	}
	start := ts.next % len(ids)
	ts.next = start + tasksPerQuery
	return append(ids[start:], ids[:start]...)[:tasksPerQuery], true
}

// poll queries the tasks of one round and wakes the followers of finished ones.
func (ts *Tasks) poll(ctx context.Context, ids []string) error {
	states, err := ts.queryTasks(ctx, ids)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrForbidden) {
		// The query service does not return tasks to every user.
		states, err = ts.readTasks(ctx, ids)
	}
	if err != nil {
		return err
	}
	var incomplete error
	for _, id := range ids {
		state, known := states[id]
		if known {
			if state, err = ts.complete(ctx, id, state); err != nil {
				incomplete = err // continue with the other tasks
				continue
			}
		}
		ts.settle(id, state, known)
	}
	return incomplete
}

// complete adds the data of a finished task that the query service does not return: its error, or its owner and result.
func (ts *Tasks) complete(ctx context.Context, id string, t Task) (Task, error) {
	switch {
	case t.State == TaskFailed && t.Err == nil:
		why, err := ts.readFailure(ctx, id)
		if err != nil && ts.tries(id) < triesUntilUnexplained {
			return t, err
		}
		t.Err = why
	case t.State == TaskSucceeded && t.Owner == "" && ts.ownerNeeded(id):
		return ts.readTask(ctx, id, t)
	}
	return t, nil
}

// tries counts and returns the failed attempts to read the error of a task.
func (ts *Tasks) tries(id string) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	most := 0
	for _, t := range ts.followed {
		if t.task.ID == id && t.task.State == TaskRunning {
			t.failedReads++
			most = max(most, t.failedReads)
		}
	}
	return most
}

// ownerNeeded reports whether a follower needs the owner of a task.
func (ts *Tasks) ownerNeeded(id string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.followed {
		if t.task.ID == id && t.task.needsOwner && t.task.Owner == "" {
			return true
		}
	}
	return false
}

// settle records the state of a task for all its followers. known is false if the task was missing from the result.
func (ts *Tasks) settle(id string, state Task, known bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.followed {
		if t.task.ID != id || t.task.State != TaskRunning {
			continue
		}
		now := t.task
		if known {
			t.misses = 0
			state.Owner = cmp.Or(t.task.Owner, state.Owner)
			state.needsOwner = t.task.needsOwner
			if state.Operation == "" {
				state.Operation = t.task.Operation
			}
			now = state
		} else if t.misses++; t.misses >= missesUntilUnknown {
			now.State = TaskUnknown
		}
		ts.note(t, now)
	}
}

// note records the state of a task, and wakes its follower if the task has finished. The caller holds the lock.
func (ts *Tasks) note(t *followedTask, now Task) {
	if now.State == TaskRunning {
		t.task = now
		return
	}
	ts.countEnded(now)
	ts.usual.learn(now)
	now.Noticed = ts.clock.Now()
	t.task = now
	ts.wakeLocked(t)
}
