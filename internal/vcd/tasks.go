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
	// tasksPerQuery bounds one task query; who follows more is served in rounds.
	tasksPerQuery = 60
	// missesUntilUnknown is how often a task must be missing from the answer before it counts as unknown.
	missesUntilUnknown = 2
	// triesUntilUnexplained is how often the reason of a failure is asked for before the failure is reported without
	// it.
	triesUntilUnexplained = 5
	// endedKept is how long the end of a task is kept for its follower. Most forget it at once, but they may be deleted
	// before, such as a machine whose finalizer was removed.
	endedKept = 24 * time.Hour
)

// Tasks follows the tasks of a session: one query polls all that run.
type Tasks struct {
	client  *api.Client
	clock   Clock
	every   time.Duration // between two polls
	metrics metrics.Site

	mu       sync.Mutex
	followed map[string]*followedTask // by key
	cancel   context.CancelFunc       // of the running poller; nil if there is none
	lastPoll time.Time
	next     int // where the next round starts
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
	key    string
	task   Task
	wake   func()
	waits  bool      // a goroutine waits for wake
	misses int       // how often it was missing from the answer in a row
	vain   int       // how often it was asked in vain why it failed
	since  time.Time // when it was first followed
	asked  time.Time // when it was last asked for
}

// Follow polls the task, with all others of the session, until it ends; then wake is called once, in a goroutine
// of its own. The key names who started it, such as the UID of a machine; a key follows one task at a time.
func (ts *Tasks) Follow(key string, t Task, wake func()) {
	ts.follow(&followedTask{key: key, task: t, wake: wake})
}

func (ts *Tasks) follow(f *followedTask) {
	switch {
	case f.task.ID == "" && f.task.State != TaskSucceeded:
		f.task.State = TaskUnknown // It cannot be asked for, and would spoil the query for all others.
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

// Task returns the task that key follows. It makes no call.
func (ts *Tasks) Task(key string) (Task, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if f, ok := ts.followed[key]; ok {
		return f.task, true
	}
	return Task{}, false
}

// Wait waits until a task has ended, polled with all others of the session, and returns it as it ended; as
// [TaskUnknown] if VCD does not know it any more, or the session was closed. When timeout fires first, it returns the
// task as it is.
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

// running counts the tasks that have not ended; several may follow the same one.
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

// countEnded counts a task that has ended, unless another of those who follow it saw that before. The lock is held.
func (ts *Tasks) countEnded(t Task) {
	for _, other := range ts.followed {
		if other.task.ID == t.ID && other.task.State != TaskRunning {
			return
		}
	}
	ts.metrics.TaskEnded(t.Operation, taskResult(t.State), t.Started, t.Ended)
}

// wakeLocked wakes the follower of a task that ended. It is called with the lock held and must not wait.
func (ts *Tasks) wakeLocked(t *followedTask) {
	if wake := t.wake; wake != nil {
		t.wake = nil
		go wake()
	}
}

// stop ends the poller. What is followed is forgotten; only [Tasks.Wait] returns.
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

// run polls while there is something to poll.
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

// giveUp stops polling, because VCD refuses the login. What becomes of the tasks is unknown: their followers
// have to check, by another session if need be.
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

// untilNextPoll keeps the distance between polls; the first after a pause comes soon, because many tasks are short. A
// poll waits a little longer if a task will have ended then: at the fixed distance, its end would be seen late.
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

// batch returns the tasks of the next round by id, and false if the poller has nothing left to do. A poller that was
// replaced must not act for its successor: its context is cancelled.
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
		t.asked = ts.lastPoll
	}
	if len(ids) <= tasksPerQuery {
		return ids, true
	}
	start := ts.next % len(ids)
	ts.next = start + tasksPerQuery
	return append(ids[start:], ids[:start]...)[:tasksPerQuery], true
}

// poll asks for the tasks of one round and wakes the followers of those that ended.
func (ts *Tasks) poll(ctx context.Context, ids []string) error {
	states, err := ts.queryTasks(ctx, ids)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrForbidden) {
		// The query service does not show tasks to everybody.
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
				incomplete = err // The others have ended all the same.
				continue
			}
		}
		ts.settle(id, state, known)
	}
	return incomplete
}

// complete adds what the query service does not show of a task that has ended: why it failed, or what came of it.
func (ts *Tasks) complete(ctx context.Context, id string, t Task) (Task, error) {
	switch {
	case t.State == TaskFailed && t.Err == nil:
		why, err := ts.whyFailed(ctx, id)
		if err != nil && ts.tries(id) < triesUntilUnexplained {
			return t, err
		}
		t.Err = why
	case t.State == TaskSucceeded && t.Owner == "" && ts.asked(id):
		return ts.readTask(ctx, id, t)
	}
	return t, nil
}

// tries counts how often it was asked in vain why a task failed.
func (ts *Tasks) tries(id string) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	most := 0
	for _, t := range ts.followed {
		if t.task.ID == id && t.task.State == TaskRunning {
			t.vain++
			most = max(most, t.vain)
		}
	}
	return most
}

// asked reports whether a follower of a task wants to know what it works on.
func (ts *Tasks) asked(id string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.followed {
		if t.task.ID == id && t.task.asks && t.task.Owner == "" {
			return true
		}
	}
	return false
}

// settle notes what is known of a task for all who follow it.
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
			state.asks = t.task.asks
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

// note records what became of a task, and wakes its follower if it ended. The lock is held.
func (ts *Tasks) note(t *followedTask, now Task) {
	if now.State == TaskRunning {
		t.task = now
		return
	}
	ts.countEnded(now)
	ts.usual.learn(now)
	t.task = now
	ts.wakeLocked(t)
}
