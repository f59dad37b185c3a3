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
		{"without previous tasks", nil, 0, after(time.Second), time.Time{}},
		{"according to its progress", nil, 25, after(time.Second), after(4 * time.Second)},
		{
			"after the usual time, regardless of its progress",
			[]time.Duration{4 * time.Second, 4500 * time.Millisecond},
			99,
			after(time.Second),
			after(4500 * time.Millisecond),
		},
		{
			"one earlier task is not sufficient",
			[]time.Duration{4 * time.Second},
			10,
			after(time.Second),
			after(10 * time.Second),
		},
		{
			"if the time varies, according to its progress",
			[]time.Duration{40 * time.Second, 60 * time.Second},
			50,
			after(20 * time.Second),
			after(40 * time.Second),
		},
		{"the progress was observed before it was followed", nil, 50, start, time.Time{}},
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
