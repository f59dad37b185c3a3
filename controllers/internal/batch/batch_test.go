// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"testing"

	. "github.com/onsi/gomega"
)

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

	first, ok := q.Begin("v", c("a"))
	g.Expect(ok).To(BeTrue())
	g.Expect(names(first)).To(ConsistOf("a"))
	for _, name := range []string{"b", "c", "d"} {
		_, ok = q.Begin("v", c(name))
		g.Expect(ok).To(BeFalse())
	}
	g.Expect(q.Leave("v", "a")).To(BeFalse(), "its request is in flight")
	g.Expect(q.Leave("v", "d")).To(BeTrue())

	first.End()
	g.Expect(woken).To(ConsistOf("b", "c"))
	second, ok := q.Begin("v", c("c"))
	g.Expect(ok).To(BeTrue())
	g.Expect(names(second)).To(ConsistOf("b", "c"), "waiting members are created together")
	g.Expect(q.Leave("v", "b")).To(BeFalse())

	second.End()
	g.Expect(q.byVApp).To(BeEmpty())
}

func TestAMemberThatFailedInABatchIsCreatedSeparately(t *testing.T) {
	g := NewWithT(t)
	var q Queues
	busy, _ := q.Begin("v", Member{Key: "x", Wake: func() {}})
	q.Begin("v", Member{Key: "bad", Alone: true, Wake: func() {}})
	busy.End()

	shared, ok := q.Begin("v", Member{Key: "a", Wake: func() {}})
	g.Expect(ok).To(BeTrue())
	g.Expect(shared.Members).To(HaveLen(1))
	shared.End()

	alone, ok := q.Begin("v", Member{Key: "bad", Alone: true, Wake: func() {}})
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
	_, ok = q.Begin("v", creator)
	g.Expect(ok).To(BeFalse())
	done()
	g.Expect(woken).To(BeEmpty())
	other()
	g.Expect(woken).To(ConsistOf("creator"))

	batch, ok := q.Begin("v", creator)
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
	batch, _ := q.Begin("v", Member{Key: "creator", Wake: wake("creator")})
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
