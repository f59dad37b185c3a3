// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// hang makes an operation of the fake hang until the test ends or the returned function is called.
func hang(t *testing.T, f *fakeVCD, op string) (release func()) {
	t.Helper()
	done := make(chan struct{})
	release = sync.OnceFunc(func() { close(done) })
	t.Cleanup(release)
	f.on(op, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	return release
}

func TestAHangingSiteBlocksFewWorkers(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	s := session(t, f, func(o *PoolOptions) {
		o.Clock = clock
		o.InFlight = 3
	})
	release := hang(t, f, opVM)
	results := make(chan error, 20)

	for range 20 {
		go func() {
			_, err := s.VMs.VM(t.Context(), testVM)
			results <- err
		}()
	}
	g.Eventually(clock.Waiting).Should(Equal(17), "three callers try, the others wait for them")
	g.Eventually(func() int { return f.count(opVM) }).Should(Equal(3))
	clock.Advance(10 * time.Second)

	for range 17 {
		g.Eventually(results).Should(Receive(MatchError(ErrUnavailable)))
	}
	for range 10 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable), "immediately")
	}
	g.Expect(f.count(opVM)).To(Equal(3))
	release()
	for range 3 {
		g.Eventually(results).Should(Receive())
	}
	f.on(opVM, answerVM)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"), "it responds again")
}

func TestAHangingSiteDoesNotAffectOthers(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	hanging := newFakeVCD(t)
	healthy := newFakeVCD(t)
	healthy.on(opVM, answerVM)
	pool := NewPool(PoolOptions{Clock: clock})
	bad, err := pool.Session(t.Context(), hanging.config())
	g.Expect(err).NotTo(HaveOccurred())
	good, err := pool.Session(t.Context(), healthy.config())
	g.Expect(err).NotTo(HaveOccurred())
	hang(t, hanging, opVM)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = bad.VMs.VM(ctx, testVM)
	}()
	g.Eventually(func() int { return hanging.count(opVM) }).Should(Equal(1))
	clock.Advance(20 * time.Second)

	_, err = pool.Session(t.Context(), hanging.config())
	g.Expect(err).To(MatchError(ErrUnavailable), "no waiting call starts")
	_, err = pool.Session(t.Context(), healthy.config())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(good.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))

	cancel()
	g.Eventually(ended).Should(BeClosed())
	_, err = pool.Session(t.Context(), hanging.config())
	g.Expect(err).NotTo(HaveOccurred(), "a canceled call proves nothing about the site")
}

func TestOneSlowCallDoesNotOpenTheBreaker(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on("GET /api/vApp/vapp-{id}",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, `<VApp id="%s" name="a"/>`, testVApp) })
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	hang(t, f, opVM)
	go func() { _, _ = s.VMs.VM(t.Context(), testVM) }()
	g.Eventually(func() int { return f.count(opVM) }).Should(Equal(1))

	for range 10 {
		clock.Advance(11 * time.Second)
		_, err := s.VApps.VApp(t.Context(), testVApp)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func TestOneCallProbesForTheEndOfAnOutage(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	for range 2 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	tried := f.count(opVM) // net/http retries requests on a reused connection
	for range 10 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	g.Expect(f.count(opVM)).To(Equal(tried), "the second failure in a row opens the breaker")
	release := hang(t, f, opVM)
	clock.Advance(45 * time.Second)
	probed := make(chan error)
	go func() {
		_, err := s.VMs.VM(t.Context(), testVM)
		probed <- err
	}()
	g.Eventually(func() int { return f.count(opVM) }).Should(Equal(tried + 1))

	_, err := s.VMs.VM(t.Context(), testVM)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(f.count(opVM)).To(Equal(tried+1), "only one call probes")
	release()
	g.Eventually(probed).Should(Receive())
	f.on(opVM, answerVM)

	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
}

func TestAHangingLoginTimesOut(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	hang(t, f, opLogin)
	pool := NewPool(PoolOptions{Clock: newFakeClock(), RequestTimeout: 100 * time.Millisecond})

	_, err := pool.Session(t.Context(), f.config())

	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err).NotTo(MatchError(context.DeadlineExceeded))
}

func TestARepeatedlyHangingLoginBlocksOneCallerOnly(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opLogin, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	pool := NewPool(PoolOptions{Clock: clock})
	_, first := pool.Session(t.Context(), f.config())
	g.Expect(first).To(MatchError(ErrUnavailable))
	release := hang(t, f, opLogin)
	tried := f.count(opLogin)
	clock.Advance(time.Minute)
	probed := make(chan error, 1)
	go func() {
		_, err := pool.Session(context.Background(), f.config())
		probed <- err
	}()
	g.Eventually(func() int { return f.count(opLogin) }).Should(Equal(tried + 1))

	_, err := pool.Session(t.Context(), f.config())

	g.Expect(err).To(MatchError(first), "no other call waits for the probe, which ends differently")
	release()
	g.Eventually(probed).Should(Receive(MatchError(ErrUnavailable)))
}

func TestWaitingForASharedLookupTimesOut(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	release := hang(t, f, "GET /api/query?type=orgVdc")
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.VDCs.FindVDC(t.Context(), "acme-vdc")
			results <- err
		}()
	}
	g.Eventually(func() int { return f.count("GET /api/query?type=orgVdc") }).Should(Equal(1))
	g.Eventually(clock.Waiting).Should(Equal(2))
	clock.Advance(10 * time.Second)

	for range 2 {
		g.Eventually(results).Should(Receive(MatchError(ErrUnavailable)))
	}
	release()
}

func TestSitesWithoutSessionsAreDropped(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	first := newFakeVCD(t)
	second := newFakeVCD(t)
	pool := NewPool(PoolOptions{Clock: clock})
	_, err := pool.Session(t.Context(), first.config())
	g.Expect(err).NotTo(HaveOccurred())
	broken := second.config()
	broken.CABundle = []byte("no certificate")
	_, err = pool.Session(t.Context(), broken)
	g.Expect(err).To(MatchError(ErrTLS))
	g.Expect(pool.sites).To(HaveLen(1))
	clock.Advance(31 * time.Minute)

	_, err = pool.Session(t.Context(), second.config())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pool.sites).To(And(HaveLen(1), HaveKey(second.URL)))
}

func TestASharedLookupIsNotTurnedAway(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on("GET /api/query?type=orgVdc", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<QueryResultRecords total="1" page="1" pageSize="128"><OrgVdcRecord name="acme-vdc" href="https://x/api/vdc/%s"/></QueryResultRecords>`, urn.UUID(testVDC))
	})
	f.on("GET /api/query?type=orgVdcStorageProfile", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<QueryResultRecords total="0" page="1" pageSize="128"></QueryResultRecords>`)
	})
	f.on(opVM, answerVM)
	clock := newFakeClock()
	s := session(t, f, func(o *PoolOptions) {
		o.Clock = clock
		o.InFlight = 1
	})
	release := hang(t, f, opVM)
	go func() { _, _ = s.VMs.VM(t.Context(), testVM) }()
	g.Eventually(func() int { return f.count(opVM) }).Should(Equal(1))
	go func() { _, _ = s.VMs.VM(As(t.Context(), "c1"), testVM) }()
	g.Eventually(clock.Waiting).Should(Equal(1))
	found := make(chan error, 1)

	go func() {
		_, err := s.VDCs.FindVDC(As(t.Context(), "c1"), "acme-vdc")
		found <- err
	}()
	g.Eventually(clock.Waiting).Should(Equal(3), "each caller, and the call itself")
	_, err := s.VMs.VM(As(t.Context(), "c1"), testVM)
	g.Expect(err).To(MatchError(ErrLater))
	release()

	g.Eventually(found).Should(Receive(BeNil()))
}
