package batch

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestOneMachineAtATimeHasTheTurn(t *testing.T) {
	g := NewWithT(t)
	var q Queue
	var woken []string
	c := func(name string) Member {
		return Member{Key: name, Wake: func() { woken = append(woken, name) }}
	}
	names := func(t Turn) []string {
		var keys []string
		for _, c := range t.VMs {
			keys = append(keys, c.Key)
		}
		return keys
	}

	first, ok := q.Take("v", c("a"))
	g.Expect(ok).To(BeTrue())
	g.Expect(names(first)).To(ConsistOf("a"))
	for _, name := range []string{"b", "c", "d"} {
		_, ok = q.Take("v", c(name))
		g.Expect(ok).To(BeFalse())
	}
	g.Expect(q.Leave("v", "a")).To(BeFalse(), "its request is under way")
	g.Expect(q.Leave("v", "d")).To(BeTrue())

	first.End()
	g.Expect(woken).To(ConsistOf("b", "c"))
	second, ok := q.Take("v", c("c"))
	g.Expect(ok).To(BeTrue())
	g.Expect(names(second)).To(ConsistOf("b", "c"), "those who wait together are created together")
	g.Expect(q.Leave("v", "b")).To(BeFalse())

	second.End()
	g.Expect(q.byVApp).To(BeEmpty())
}

func TestWhoFailedInCompanyGoesAlone(t *testing.T) {
	g := NewWithT(t)
	var q Queue
	busy, _ := q.Take("v", Member{Key: "x", Wake: func() {}})
	q.Take("v", Member{Key: "bad", Alone: true, Wake: func() {}})
	busy.End()

	company, ok := q.Take("v", Member{Key: "a", Wake: func() {}})
	g.Expect(ok).To(BeTrue())
	g.Expect(company.VMs).To(HaveLen(1))
	company.End()

	alone, ok := q.Take("v", Member{Key: "bad", Alone: true, Wake: func() {}})
	g.Expect(ok).To(BeTrue())
	g.Expect(alone.VMs).To(HaveLen(1))
}
