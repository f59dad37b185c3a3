// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A heldList is a list whose reads wait until they are released.
type heldList struct {
	*list[string]

	begun chan struct{}
	let   chan []string
	reads int
}

func newList() *heldList {
	l := &heldList{begun: make(chan struct{}, 9), let: make(chan []string, 9)}
	l.list = &list[string]{driver: New(nil, Options{}), id: func(s string) string { return s[:1] }}
	l.read = func(context.Context, *vcd.Session) ([]string, error) {
		l.reads++
		l.begun <- struct{}{}
		items := <-l.let
		if items == nil {
			return nil, errors.New("no")
		}
		return items, nil
	}
	return l
}

// ask requests the list in the background.
func (l *heldList) ask(want demand) <-chan []string {
	got := make(chan []string, 1)
	go func() {
		items, err := l.get(context.Background(), nil, want)
		if err != nil {
			items = []string{err.Error()}
		}
		got <- items
	}()
	return got
}

var anyAge = demand{maxAge: time.Hour}

func TestConcurrentCallersShareOneRead(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	first := l.ask(anyAge)
	<-l.begun
	second := l.ask(anyAge)
	l.let <- []string{"a"}

	g.Expect(<-first).To(Equal([]string{"a"}))
	g.Expect(<-second).To(Equal([]string{"a"}))
	g.Expect(<-l.ask(anyAge)).To(Equal([]string{"a"}))
	g.Expect(l.reads).To(Equal(1))
}

func TestWritesDuringAReadAreNotLost(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	got := l.ask(anyAge)
	<-l.begun
	l.put("c1")
	l.put("a2")
	l.drop("b")
	l.edit("d", func(s *string) { *s = "d2" })
	l.let <- []string{"a1", "b1", "d1"} // from before

	g.Expect(<-got).To(Equal([]string{"a2", "d2", "c1"}))
	g.Expect(<-l.ask(anyAge)).To(Equal([]string{"a2", "d2", "c1"}))
}

func TestARequestForFreshDataStartsANewRead(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	old := l.ask(anyAge)
	<-l.begun
	fresh := l.ask(demand{maxAge: time.Hour, after: l.driver.next()})
	l.let <- []string{"a"}
	g.Expect(<-old).To(Equal([]string{"a"}))
	<-l.begun
	l.let <- []string{"b"}
	g.Expect(<-fresh).To(Equal([]string{"b"}))
}

func TestAnInvalidatedListIsReadAgain(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	before := l.ask(anyAge)
	<-l.begun
	l.invalidate()
	after := l.ask(anyAge)
	l.let <- []string{"a"}
	g.Expect(<-before).To(Equal([]string{"a"}))
	<-l.begun
	l.let <- []string{"b"}
	g.Expect(<-after).To(Equal([]string{"b"}))
}

func TestAFailedReadIsNotCached(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	got := l.ask(anyAge)
	l.let <- nil
	g.Expect(<-got).To(Equal([]string{"no"}))
	got = l.ask(anyAge)
	l.let <- []string{"a"}
	g.Expect(<-got).To(Equal([]string{"a"}))
}

func TestReturnedListsDoNotChange(t *testing.T) {
	g := NewWithT(t)
	l := newList()
	got := l.ask(anyAge)
	l.let <- []string{"a1", "b1"}
	items := <-got
	l.put("a2")
	l.drop("b")
	g.Expect(items).To(Equal([]string{"a1", "b1"}))
}

func TestEveryFailureIsClassified(t *testing.T) {
	g := NewWithT(t)
	for cause, kind := range map[error]error{
		vcd.ErrBusy:         loadbalancer.ErrBusy,
		vcd.ErrThrottled:    loadbalancer.ErrBusy,
		vcd.ErrLater:        loadbalancer.ErrBusy,
		vcd.ErrChanged:      loadbalancer.ErrBusy,
		vcd.ErrInvalid:      loadbalancer.ErrRefused,
		vcd.ErrForbidden:    loadbalancer.ErrRefused,
		vcd.ErrQuota:        loadbalancer.ErrRefused,
		vcd.ErrUnauthorized: loadbalancer.ErrRefused,
		vcd.ErrUnavailable:  loadbalancer.ErrUnknown,
		context.Canceled:    loadbalancer.ErrUnknown,
		errors.New("x"):     loadbalancer.ErrUnknown,
	} {
		err := classified(fmt.Errorf("doing: %w", cause))
		g.Expect(err).To(MatchError(kind))
		g.Expect(err).To(MatchError(cause), "the cause is kept")
		g.Expect(classified(err)).To(Equal(err))
	}
	g.Expect(classified(nil)).To(Succeed())
	g.Expect(taskFailure(vcd.Task{Err: vcd.ErrUnavailable})).To(MatchError(loadbalancer.ErrBusy), "it is not queued")
}

func TestFreeAddressesOfLargeSpaces(t *testing.T) {
	g := NewWithT(t)
	taken := map[netip.Addr]bool{}
	addr := netip.MustParseAddr
	for a := addr("2001:db8::1"); len(taken) < 5000; a = a.Next() {
		taken[a] = true
	}
	large := vcd.AddressRange{From: addr("2001:db8::1"), To: addr("2001:db8:ffff::")}

	g.Expect(freeIn(large, taken, false)).To(HaveLen(maxFree))
	for range 100 {
		for _, r := range []vcd.AddressRange{
			large,
			{From: addr("10.0.0.250"), To: addr("10.0.1.5")},
			{From: addr("10.0.0.1"), To: addr("10.0.0.1")},
		} {
			found := freeIn(r, taken, true)
			g.Expect(found).NotTo(BeEmpty())
			for _, a := range found {
				g.Expect(r.Contains(a) && !taken[a]).To(BeTrue(), "%s in %v", a, r)
			}
		}
	}
	g.Expect(freeIn(vcd.AddressRange{From: addr("10.0.0.1"), To: addr("10.0.0.3")},
		map[netip.Addr]bool{addr("10.0.0.2"): true}, false)).
		To(Equal([]netip.Addr{addr("10.0.0.1"), addr("10.0.0.3")}))
}
