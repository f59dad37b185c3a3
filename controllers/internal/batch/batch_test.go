// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestOneBatchAtATimeIsCreatedPerVApp(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	var woken []string
	c := func(name string) Member {
		return Member{Key: name, Wake: func() { woken = append(woken, name) }}
	}
	names := func(t Batch) []string {
		var keys []string
		for _, c := range t.Members {
			keys = append(keys, c.Key)
		}
		return keys
	}

	first, ok := q.Begin("v", c("a"), start)
	g.Expect(ok).To(BeTrue())
	g.Expect(names(first)).To(ConsistOf("a"))
	for _, name := range []string{"b", "c", "d"} {
		_, ok = q.Begin("v", c(name), start)
		g.Expect(ok).To(BeFalse())
	}
	g.Expect(q.Leave("v", "a")).To(BeFalse(), "its request is in flight")
	g.Expect(q.Leave("v", "d")).To(BeTrue())

	first.End()
	g.Expect(woken).To(ConsistOf("b", "c"))
	second, ok := q.Begin("v", c("c"), start)
	g.Expect(ok).To(BeTrue())
	g.Expect(names(second)).To(ConsistOf("b", "c"), "waiting members are created together")
	g.Expect(q.Leave("v", "b")).To(BeFalse())

	second.End()
	g.Expect(q.byVApp).To(BeEmpty())
}

func TestAMemberThatFailedInABatchIsCreatedSeparately(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	busy, _ := q.Begin("v", Member{Key: "x", Wake: func() {}}, start)
	q.Begin("v", Member{Key: "bad", Alone: true, Wake: func() {}}, start)
	busy.End()

	shared, ok := q.Begin("v", Member{Key: "a", Wake: func() {}}, start)
	g.Expect(ok).To(BeTrue())
	g.Expect(shared.Members).To(HaveLen(1))
	shared.End()

	alone, ok := q.Begin("v", Member{Key: "bad", Alone: true, Wake: func() {}}, start)
	g.Expect(ok).To(BeTrue())
	g.Expect(alone.Members).To(HaveLen(1))
}

func TestRequestsForVMsAndForTheirVAppExcludeEachOther(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	var woken []string
	wake := func(name string) func() { return func() { woken = append(woken, name) } }
	creator := Member{Key: "creator", Wake: wake("creator")}

	done, ok := q.Write("v", "a", wake("a"))
	g.Expect(ok).To(BeTrue())
	other, ok := q.Write("v", "b", wake("b"))
	g.Expect(ok).To(BeTrue(), "VMs of one vApp are changed concurrently")
	_, ok = q.Begin("v", creator, start)
	g.Expect(ok).To(BeFalse())
	done()
	g.Expect(woken).To(BeEmpty())
	other()
	g.Expect(woken).To(ConsistOf("creator"))

	batch, ok := q.Begin("v", creator, start)
	g.Expect(ok).To(BeTrue())
	_, ok = q.Write("v", "a", wake("a"))
	g.Expect(ok).To(BeFalse(), "a request of the vApp is in flight")
	running := true
	q.Started("v", func() bool { return running })
	batch.End()
	_, ok = q.Write("v", "b", wake("b"))
	g.Expect(ok).To(BeFalse(), "its task is running")
	running = false
	q.Ended("v")
	g.Expect(woken).To(ConsistOf("creator", "a", "b"))
	done, ok = q.Write("v", "a", wake("a"))
	g.Expect(ok).To(BeTrue())
	done()
	g.Expect(q.byVApp).To(BeEmpty())
}

func TestAVAppIsFreeAfterItsTaskEndedUnnoticed(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	var woken []string
	wake := func(name string) func() { return func() { woken = append(woken, name) } }
	batch, _ := q.Begin("v", Member{Key: "creator", Wake: wake("creator")}, start)
	running := true
	q.Started("v", func() bool { return running })
	batch.End()
	q.Write("v", "a", wake("a"))

	running = false // The session that followed the task was closed, so Ended is not called.
	done, ok := q.Write("v", "b", wake("b"))
	g.Expect(ok).To(BeTrue())
	done()

	g.Expect(woken).To(ConsistOf("a"))
	g.Expect(q.byVApp).To(BeEmpty())
}

func TestTheLastMachineThatLeavesDropsTheQueue(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	q.Join("v", Member{Key: "a", Wake: func() {}})
	q.Join("v", Member{Key: "b", Wake: func() {}})

	g.Expect(q.Leave("v", "a")).To(BeTrue())
	g.Expect(q.byVApp).To(HaveKey("v"), "another machine waits")
	g.Expect(q.Leave("v", "b")).To(BeTrue())

	g.Expect(q.byVApp).To(BeEmpty())
}

func TestAPostponedBatchIsTriedByOneMachine(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	var woken []string
	c := func(name string) Member {
		return Member{Key: name, Wake: func() { woken = append(woken, name) }}
	}
	first, _ := q.Begin("v", c("a"), start)
	q.Begin("v", c("b"), start)
	_, ok := q.Write("v", "w", func() { woken = append(woken, "w") })
	g.Expect(ok).To(BeFalse())

	first.Postpone(start.Add(3 * time.Second))
	g.Expect(woken).To(ConsistOf("w"), "others would find the same lock")
	g.Expect(q.Postponed("v", "a", start.Add(time.Second))).To(Equal(2 * time.Second))
	g.Expect(q.Postponed("v", "b", start.Add(time.Second))).To(BeZero())
	_, ok = q.Begin("v", c("b"), start.Add(time.Second))
	g.Expect(ok).To(BeFalse())

	second, ok := q.Begin("v", c("a"), start.Add(3*time.Second))
	g.Expect(ok).To(BeTrue())
	g.Expect(second.Members).To(HaveLen(2), "those who wait together are created together")
	second.Postpone(start.Add(6 * time.Second))
	g.Expect(q.Leave("v", "a")).To(BeTrue())
	third, ok := q.Begin("v", c("b"), start.Add(4*time.Second))
	g.Expect(ok).To(BeTrue(), "the machine that postponed the batch is gone")
	g.Expect(third.Members).To(HaveLen(1))
	third.End()
	g.Expect(q.byVApp).To(BeEmpty())
}
