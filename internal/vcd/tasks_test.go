// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

const opQueryTask = "GET /api/query?type=task"

// taskServer responds to task queries with states by UUID.
type taskServer struct {
	*fakeVCD

	states   map[string]string
	perQuery []int // tasks per query
}

func newTaskServer(t *testing.T) *taskServer {
	t.Helper()
	s := &taskServer{fakeVCD: newFakeVCD(t), states: map[string]string{}}
	s.on(opQueryTask, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		ids := urn.UUIDPattern.FindAllString(r.URL.RawQuery, -1)
		s.perQuery = append(s.perQuery, len(ids))
		reply(w, `<QueryResultRecords total="%d" page="1" pageSize="128">`, len(ids))
		for _, id := range ids {
			if state := s.states[id]; state != "" {
				reply(w, `<TaskRecord name="vappUpdateVm" status="%s" progress="50" href="https://x/api/task/%s"/>`,
					state, id)
			}
		}
		reply(w, `</QueryResultRecords>`)
	})
	return s
}

func (s *taskServer) set(id, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[urn.UUID(id)] = state
}

// rounds returns the number of tasks in each query.
func (s *taskServer) rounds() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.perQuery)
}

func taskID(n int) string { return fmt.Sprintf("urn:vcloud:task:%08d-4444-4444-8444-444444444444", n) }

// tick makes the poller poll once more, at the latest after one and a half times its interval.
func tick(g Gomega, clock *fakeClock, f *taskServer) {
	before := f.count(opQueryTask)
	g.Eventually(clock.Waiting).Should(BeNumerically(">", 0))
	clock.Advance(3 * time.Second)
	g.Eventually(func() int { return f.count(opQueryTask) }).Should(Equal(before + 1))
}

func TestFollow(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	woken := make(chan string, 10)
	for i := range 5 {
		f.set(taskID(i), "running")
		s.Tasks.Follow(fmt.Sprint("m", i), Task{ID: taskID(i), Owner: testVM}, func() { woken <- fmt.Sprint("m", i) })
	}

	tick(g, clock, f)
	g.Eventually(func() int { task, _ := s.Tasks.Task("m3"); return task.Progress }).Should(Equal(50))
	f.set(taskID(3), "success")
	tick(g, clock, f)

	g.Eventually(woken).Should(Receive(Equal("m3")))
	task, ok := s.Tasks.Task("m3")
	g.Expect(ok).To(BeTrue())
	g.Expect(task).To(Equal(Task{
		ID:        taskID(3),
		Owner:     testVM,
		Operation: "vappUpdateVm",
		State:     TaskSucceeded,
		Progress:  50,
		Noticed:   clock.Now(),
	}))
	tick(g, clock, f)
	g.Eventually(f.rounds).Should(Equal([]int{5, 5, 4}))
	g.Consistently(woken, "50ms").ShouldNot(Receive())
	s.Tasks.Forget("m3")
	_, ok = s.Tasks.Task("m3")
	g.Expect(ok).To(BeFalse())
}

func TestWaiting(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	f.set(testTask, "running")
	type result struct {
		task Task
		err  error
	}
	results := make(chan result, 1)
	wait := func(ctx context.Context, timeout <-chan time.Time) {
		go func() {
			task, err := s.Tasks.Wait(ctx, Task{ID: testTask}, timeout)
			results <- result{task, err}
		}()
		g.Eventually(s.Tasks.running).Should(Equal(1))
	}
	var got result

	timeout := make(chan time.Time)
	wait(t.Context(), timeout)
	timeout <- clock.Now()
	g.Eventually(results).Should(Receive(&got))
	g.Expect(got.task.State).To(Equal(TaskRunning), "it is still running after the timeout")

	ctx, cancel := context.WithCancel(t.Context())
	wait(ctx, nil)
	cancel()
	g.Eventually(results).Should(Receive(&got))
	g.Expect(got.err).To(MatchError(context.Canceled))

	wait(t.Context(), nil)
	s.Tasks.stop()
	g.Eventually(results).Should(Receive(&got))
	g.Expect(got).To(Equal(result{task: Task{ID: testTask, State: TaskUnknown}}), "the session is closed")

	wait(t.Context(), nil)
	f.set(testTask, "success")
	g.Eventually(func() bool { clock.Advance(time.Minute); return len(results) > 0 }).Should(BeTrue())
	g.Expect((<-results).task.State).To(Equal(TaskSucceeded))
	g.Expect(s.Tasks.running()).To(BeZero())
}

// rests reports whether the poller has stopped.
func (ts *Tasks) rests() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.cancel == nil
}

func TestThePollerIsIdleWithoutTasks(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	f.set(testTask, "success")
	s.Tasks.Follow("m", Task{ID: testTask}, nil)
	tick(g, clock, f)
	g.Eventually(func() TaskState { task, _ := s.Tasks.Task("m"); return task.State }).Should(Equal(TaskSucceeded))

	g.Eventually(clock.Waiting).Should(Equal(1))
	clock.Advance(time.Minute)
	g.Consistently(func() int { clock.Advance(time.Minute); return f.count(opQueryTask) }, "50ms").Should(Equal(1))
	g.Eventually(s.Tasks.rests).Should(BeTrue())

	s.Tasks.Follow("m", Task{ID: testTask}, nil)
	tick(g, clock, f)
}

func TestTheCauseOfATaskFailureIsRequestedAgain(t *testing.T) {
	tests := []struct {
		name   string
		failed int // number of responses
		kind   error
	}{
		{"once", 1, ErrQuota},
		{"ever", 1000, ErrUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			clock := newFakeClock()
			f := newTaskServer(t)
			f.on("GET /api/task/{id}", func(w http.ResponseWriter, _ *http.Request) {
				if f.count("GET /api/task/{id}") <= tt.failed {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				reply(w, `<Task status="error"><Error majorErrorCode="400" minorErrorCode="QUOTA_EXCEEDED" message="VM quota is used up."/></Task>`)
			})
			f.set(testTask, "error")
			s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
			woken := make(chan struct{})
			s.Tasks.Follow("m", Task{ID: testTask}, func() { close(woken) })

			g.Eventually(func() chan struct{} { clock.Advance(time.Second); return woken }).Should(BeClosed())

			task, _ := s.Tasks.Task("m")
			g.Expect(task.State).To(Equal(TaskFailed))
			g.Expect(task.Err).To(MatchError(tt.kind))
		})
	}
}

func TestAFailedTaskReportsItsCause(t *testing.T) {
	tests := []struct {
		name, body string
		kind       error
		text       string
	}{
		{
			name: "an error",
			body: `<Task status="error" operationName="vdcRecomposeVapp"><Error majorErrorCode="400" minorErrorCode="QUOTA_EXCEEDED" message="[ 4 ] VM quota is used up."/></Task>`,
			kind: ErrQuota,
			text: "VM quota is used up. (HTTP 400 QUOTA_EXCEEDED)",
		},
		{name: "an aborted task", body: `<Task status="aborted"/>`, kind: ErrUnavailable, text: "the task ended as aborted"},
		{
			name: "a missing dependency does not prove the absence of its owner",
			body: `<Task status="error"><Error majorErrorCode="404" minorErrorCode="RESOURCE_NOT_FOUND" message="No such network."/></Task>`,
			kind: ErrInvalid,
			text: "No such network. (HTTP 404 RESOURCE_NOT_FOUND)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			clock := newFakeClock()
			f := newTaskServer(t)
			f.on("GET /api/task/{id}", func(w http.ResponseWriter, _ *http.Request) { reply(w, "%s", tt.body) })
			f.set(testTask, "aborted")
			s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
			woken := make(chan struct{})
			s.Tasks.Follow("m", Task{ID: testTask}, func() { close(woken) })

			tick(g, clock, f)

			g.Eventually(woken).Should(BeClosed())
			task, _ := s.Tasks.Task("m")
			g.Expect(task.State).To(Equal(TaskFailed))
			g.Expect(task.Err).To(MatchError(tt.kind))
			g.Expect(task.Err).NotTo(MatchError(ErrNotFound))
			g.Expect(task.Err.Error()).To(Equal(tt.text))
		})
	}
}

func TestTasksAreReadOneByOneIfTheQueryIsRejected(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	f.on(opQueryTask, func(w http.ResponseWriter, _ *http.Request) {
		xmlError(w, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "No.")
	})
	f.on("GET /api/task/{id}", func(w http.ResponseWriter, _ *http.Request) { xmlTask(w, "success") })
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	woken := make(chan struct{})
	s.Tasks.Follow("m", Task{ID: testTask}, func() { close(woken) })

	tick(g, clock, f)

	g.Eventually(woken).Should(BeClosed())
	task, _ := s.Tasks.Task("m")
	g.Expect(task.State).To(Equal(TaskSucceeded))
}

func TestAMissingTaskIsUnknownAfterTheSecondCheck(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	woken := make(chan struct{})
	s.Tasks.Follow("m", Task{ID: testTask}, func() { close(woken) })

	tick(g, clock, f)
	g.Consistently(woken, "30ms").ShouldNot(BeClosed())
	tick(g, clock, f)

	g.Eventually(woken).Should(BeClosed())
	task, _ := s.Tasks.Task("m")
	g.Expect(task.State).To(Equal(TaskUnknown))
}

func TestAnOutageDoesNotEndTasks(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	handler := f.handlers[opQueryTask]
	f.on(opQueryTask, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s.Tasks.Follow("m", Task{ID: testTask}, nil)
	for range 3 {
		tick(g, clock, f)
	}
	f.on(opQueryTask, handler)
	f.set(testTask, "success")

	tick(g, clock, f)

	g.Eventually(func() TaskState { task, _ := s.Tasks.Task("m"); return task.State }).Should(Equal(TaskSucceeded))
}

func TestATaskThatEndedAtOnceIsNotPolled(t *testing.T) {
	g := NewWithT(t)
	f := newTaskServer(t)
	s := session(t, f.fakeVCD)
	woken := make(chan struct{})

	s.Tasks.Follow("m", Task{ID: testTask, State: TaskSucceeded}, func() { close(woken) })

	g.Eventually(woken).Should(BeClosed())
	g.Expect(f.count(opQueryTask)).To(BeZero())
}

func TestAbandonedTasksAreEventuallyDropped(t *testing.T) {
	g := NewWithT(t)
	f := newTaskServer(t)
	clock := newFakeClock()
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	s.Tasks.Follow("abandoned", Task{ID: taskID(1), State: TaskSucceeded}, nil)

	clock.Advance(endedKept)
	s.Tasks.Follow("at noon", Task{ID: taskID(2), State: TaskSucceeded}, nil)
	_, known := s.Tasks.Task("abandoned")
	g.Expect(known).To(BeTrue())

	clock.Advance(time.Second)
	s.Tasks.Follow("later", Task{ID: taskID(3), State: TaskSucceeded}, nil)
	_, known = s.Tasks.Task("abandoned")
	g.Expect(known).To(BeFalse())
	_, known = s.Tasks.Task("at noon")
	g.Expect(known).To(BeTrue())
}

func TestManyTasksArePolledInRounds(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	for i := range 100 {
		f.set(taskID(i), "success")
		s.Tasks.Follow(fmt.Sprint(i), Task{ID: taskID(i)}, nil)
	}

	tick(g, clock, f)
	tick(g, clock, f)

	g.Eventually(func() int {
		n := 0
		for i := range 100 {
			if task, _ := s.Tasks.Task(fmt.Sprint(i)); task.State == TaskSucceeded {
				n++
			}
		}
		return n
	}).Should(Equal(100))
	g.Expect(f.rounds()).To(Equal([]int{60, 40}))
}

func TestClosingStopsThePoller(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	s.Tasks.Follow("m", Task{ID: testTask}, func() { t.Error("woken") })
	g.Eventually(clock.Waiting).Should(Equal(1))

	_ = s.close(t.Context())
	clock.Advance(time.Minute)

	g.Consistently(func() int { return f.count(opQueryTask) }, "30ms").Should(BeZero())
	g.Expect(strings.Join(f.calls, " ")).NotTo(ContainSubstring("task"))
}

func TestARejectedLoginEndsTheFollowing(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	f.on("DELETE /api/session", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	pool := NewPool(PoolOptions{Clock: clock, RequestsPerSecond: 1000, Burst: 1000})
	old, err := pool.Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())
	f.set(testTask, "running")
	woken := make(chan struct{})
	old.Tasks.Follow("m", Task{ID: testTask}, func() { close(woken) })
	g.Eventually(clock.Waiting).Should(Equal(1))
	f.setPassword("new")
	f.expire()

	clock.Advance(2 * time.Second)

	g.Eventually(woken).Should(BeClosed())
	task, _ := old.Tasks.Task("m")
	g.Expect(task.State).To(Equal(TaskUnknown))
	g.Consistently(clock.Waiting, "30ms").Should(BeZero(), "polling has ended")
	config := f.config()
	config.Credentials.Password = "new"
	clock.Advance(31 * time.Minute)
	_, err = pool.Session(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pool.sessions).To(HaveLen(1), "the old session is gone")
}

func TestPollingDoesNotKeepASessionAlive(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	f.set(testTask, "running")
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	s.Tasks.Follow("m", Task{ID: testTask}, nil)
	used := clock.Now()

	for range 3 {
		tick(g, clock, f)
	}

	g.Expect(s.auth.UsedBefore(used.Add(time.Second))).To(BeTrue())
}

func TestTheResultOfATaskIsRequestedAfterItWasSeenRunning(t *testing.T) {
	g := NewWithT(t)
	f := newTaskServer(t)
	s := session(t, f.fakeVCD)
	release := hang(t, f.fakeVCD, "GET /api/query?type=task")
	defer release()
	s.Tasks.Follow("a", Task{ID: taskID(0), needsOwner: true}, func() {})

	s.Tasks.settle(taskID(0), Task{ID: taskID(0), State: TaskRunning, Progress: 50}, true)

	g.Expect(s.Tasks.ownerNeeded(taskID(0))).To(BeTrue())
}
