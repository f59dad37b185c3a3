// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestExpectedEndOfATask(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	after := start.Add
	tests := []struct {
		name     string
		took     []time.Duration
		progress int
		polled   time.Time
		want     time.Time
	}{
		{name: "without previous tasks", polled: after(time.Second), want: time.Time{}},
		{name: "according to its progress", progress: 25, polled: after(time.Second), want: after(4 * time.Second)},
		{
			name:     "after the usual time, regardless of its progress",
			took:     []time.Duration{4 * time.Second, 4500 * time.Millisecond},
			progress: 99,
			polled:   after(time.Second),
			want:     after(4500 * time.Millisecond),
		},
		{
			name:     "one earlier task is not sufficient",
			took:     []time.Duration{4 * time.Second},
			progress: 10,
			polled:   after(time.Second),
			want:     after(10 * time.Second),
		},
		{
			name:     "if the time varies, according to its progress",
			took:     []time.Duration{40 * time.Second, 60 * time.Second},
			progress: 50,
			polled:   after(20 * time.Second),
			want:     after(40 * time.Second),
		},
		{name: "the progress was observed before it was followed", progress: 50, polled: start, want: time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := durations{}
			for _, took := range tt.took {
				d.learn(Task{Operation: "vappUpdateVm", State: TaskSucceeded, Started: start, Ended: after(took)})
			}
			d.learn(Task{Operation: "vappUpdateVm", State: TaskFailed, Started: start, Ended: after(time.Hour)})

			got := d.end(&followedTask{
				task:     Task{Operation: "vappUpdateVm", Progress: tt.progress},
				since:    start,
				polledAt: tt.polled,
			})

			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

func TestAPollWaitsForATaskAboutToEnd(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newTaskServer(t)
	s := session(t, f.fakeVCD, func(o *PoolOptions) { o.Clock = clock })
	f.set(testTask, "running") // The server reports 50% progress.
	s.Tasks.Follow("m", Task{ID: testTask}, nil)
	g.Eventually(clock.Waiting).Should(Equal(1))
	clock.Advance(2 * time.Second)
	g.Eventually(func() int { return f.count(opQueryTask) }).Should(Equal(1))
	g.Eventually(clock.Waiting).Should(Equal(1))

	clock.Advance(2100 * time.Millisecond)
	g.Consistently(func() int { return f.count(opQueryTask) }, "30ms").Should(Equal(1),
		"two seconds too early would cost two seconds")
	f.set(testTask, "success")
	clock.Advance(100 * time.Millisecond)

	g.Eventually(func() TaskState { task, _ := s.Tasks.Task("m"); return task.State }).Should(Equal(TaskSucceeded))
}
