// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// A safe keeps a token in memory.
type safe struct {
	mu     sync.Mutex
	token  string
	err    error // of Store
	stored int
}

func (s *safe) Load(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, nil
}

func (s *safe) Store(_ context.Context, old, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.token != old:
		return vcd.ErrConflict
	}
	s.token = token
	s.stored++
	return nil
}

func (s *safe) set(token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
	s.err = err
}

// account returns the first token of a new service account.
func account(t *testing.T, sim *vcdsim.Simulator, name string) string {
	t.Helper()
	return vcdsimtest.ServiceAccount(t, sim, name, vcdsim.RoleCloudProvider)
}

// laterClock is the real clock, some time ahead.
type laterClock struct{ ahead atomic.Int64 }

func (c *laterClock) Now() time.Time                         { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *laterClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// login returns a separate pool, as in a program, and a function that opens its session.
func login(t *testing.T, sim *vcdsim.Simulator, tokens vcd.TokenStore) (*vcd.Pool, func() (*vcd.Session, error)) {
	t.Helper()
	return loginAt(t, sim, tokens, &laterClock{})
}

func loginAt(t *testing.T, sim *vcdsim.Simulator, tokens vcd.TokenStore, clock vcd.Clock) (*vcd.Pool, func() (*vcd.Session, error)) {
	t.Helper()
	pool := vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 10000, Burst: 10000, Clock: clock})
	config := vcd.Config{
		Site:           sim.URL(),
		Org:            "acme",
		CABundle:       sim.CA(),
		ServiceAccount: vcd.NewServiceAccount(tokens),
	}
	return pool, func() (*vcd.Session, error) { return pool.Session(t.Context(), config) }
}

func TestServiceAccountsRotateTheirTokens(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	safes := []*safe{
		{token: account(t, sim, "manager")},
		{token: account(t, sim, "ccm-a")},
		{token: account(t, sim, "ccm-b")},
	}
	var sessions []func() (*vcd.Session, error)
	for _, s := range safes {
		pool, session := login(t, sim, s)
		t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
		sessions = append(sessions, session)
	}

	for round := range 100 {
		sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
		var all sync.WaitGroup
		for _, session := range sessions {
			for range 3 { // concurrently, with one token
				all.Go(func() {
					s, err := session()
					if err == nil {
						_, err = s.VApps.FindVApp(t.Context(),
							vcd.VDC{Ref: vcd.Ref{ID: "urn:vcloud:vdc:00000000-0000-4000-8000-000000000000"}}, "none")
					}
					if !errors.Is(err, vcd.ErrNotFound) {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
		}
		all.Wait()
	}

	for _, s := range safes {
		g.Expect(s.stored).To(BeNumerically("~", 100, 1))
	}
}

func TestAnUnsavableTokenIsKept(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: account(t, sim, "ccm")}
	first := tokens.token
	tokens.set(first, errors.New("no API server"))
	pool, session := login(t, sim, tokens)
	s, err := session()
	g.Expect(err).NotTo(HaveOccurred(), "the session of the login works")
	g.Expect(tokens.token).To(Equal(first))

	sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
	_, err = s.VDCs.FindVDC(t.Context(), "acme-vdc")
	g.Expect(err).NotTo(HaveOccurred(), "another login uses the unsaved token")

	tokens.set(first, nil)
	g.Expect(pool.Close(t.Context())).To(Succeed())
	g.Expect(tokens.token).NotTo(Equal(first), "it is saved at the latest when the pool is closed")
	next, session := login(t, sim, tokens)
	_, err = session()
	g.Expect(err).NotTo(HaveOccurred(), "so that the next process can log in")
	g.Expect(next.Close(t.Context())).To(Succeed())
}

func TestARejectedTokenIsTriedOnce(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: "stolen"}
	pool, session := login(t, sim, tokens)
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	for range 5 {
		_, err := session()
		g.Expect(err).To(MatchError(vcd.ErrUnauthorized))
		g.Expect(err.Error()).NotTo(ContainSubstring("stolen"))
	}
	g.Expect(sim.Counters()).To(HaveKeyWithValue("POST /oauth/tenant/token", 1))
}

const tokenLogin = "POST /oauth/tenant/token"

func TestACorrectedTokenWorksSoon(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: "mistyped"}
	clock := &laterClock{}
	pool, session := loginAt(t, sim, tokens, clock)
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	_, err := session()
	g.Expect(err).To(MatchError(vcd.ErrUnauthorized))

	tokens.set(account(t, sim, "ccm"), nil)
	clock.ahead.Add(int64(time.Minute))

	_, err = session()
	g.Expect(err).NotTo(HaveOccurred())
}

func TestATokenRejectedElsewhereIsTried(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	pool := vcd.NewPool(vcd.PoolOptions{})
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	config := vcd.Config{
		Site:           sim.URL(),
		Org:            "System",
		CABundle:       sim.CA(),
		ServiceAccount: vcd.NewServiceAccount(&safe{token: account(t, sim, "ccm")}),
	}
	_, err := pool.Session(t.Context(), config)
	g.Expect(err).To(MatchError(vcd.ErrUnauthorized))

	config.Org = "acme"
	_, err = pool.Session(t.Context(), config)

	g.Expect(err).NotTo(HaveOccurred(), "an organization outside the token's does not block the others")
}

// A late store reads a token, and then another process logs in with it, for example the predecessor of this process.
type late struct {
	*safe

	meanwhile func()
}

func (l *late) Load(ctx context.Context) (string, error) {
	token, err := l.safe.Load(ctx)
	meanwhile := l.meanwhile
	l.meanwhile = func() {}
	meanwhile()
	return token, err
}

func TestAConcurrentlyUsedTokenIsReadAgain(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	shared := &safe{token: account(t, sim, "manager")}
	before, first := login(t, sim, shared)
	defer func() { _ = before.Close(context.WithoutCancel(t.Context())) }()
	after, second := login(t, sim, &late{
		safe: shared,
		meanwhile: func() {
			_, err := first()
			g.Expect(err).NotTo(HaveOccurred())
		},
	})
	defer func() { _ = after.Close(context.WithoutCancel(t.Context())) }()

	_, err := second()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shared.stored).To(Equal(2))
	g.Expect(sim.Counters()).To(HaveKeyWithValue(tokenLogin, 3+1),
		"the first token was rejected once, and the account's own request counts")
}

func TestATokenRevokedBeforeItWasSaved(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: account(t, sim, "ccm")}
	another := account(t, sim, "another")
	tokens.set(tokens.token, errors.New("no API server"))
	pool, session := login(t, sim, tokens)
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	_, err := session()
	g.Expect(err).NotTo(HaveOccurred())

	tokens.set(another, errors.New("no API server"))
	sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() })
	sim.Faults().Add(vcdsim.Fault{Operation: tokenLogin, Status: 401, Count: 1})
	s, err := session()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.VDCs.FindVDC(t.Context(), "acme-vdc")
	g.Expect(err).NotTo(HaveOccurred())

	rival, used := login(t, sim, &safe{token: another})
	defer func() { _ = rival.Close(context.WithoutCancel(t.Context())) }()
	_, err = used()
	g.Expect(err).To(MatchError(vcd.ErrUnauthorized), "the token stored by another process was used")
}

// A broken store has no token.
type broken struct{ err error }

func (b broken) Load(context.Context) (string, error)        { return "", b.err }
func (b broken) Store(context.Context, string, string) error { return b.err }

func TestTheCauseOfAMissingTokenIsReturned(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	reason := errors.New("no API server")
	pool, session := login(t, sim, broken{reason})
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()

	_, err := session()

	g.Expect(err).To(And(MatchError(reason), MatchError(vcd.ErrUnavailable)))
	g.Expect(sim.Counters()).NotTo(HaveKey(tokenLogin))
}

func TestNoLoginWhileAServiceAccountIsSuspended(t *testing.T) {
	g := NewWithT(t)
	sim := vcdsimtest.Start(t, vcdsim.Config{})
	tokens := &safe{token: account(t, sim, "manager")}
	service := vcd.NewServiceAccount(tokens)
	pool := vcd.NewPool(vcd.PoolOptions{})
	defer func() { _ = pool.Close(context.WithoutCancel(t.Context())) }()
	loggedIn := make(chan error, 1)

	err := service.Rest(t.Context(), func() error {
		go func() {
			_, err := pool.Session(t.Context(),
				vcd.Config{Site: sim.URL(), Org: "acme", CABundle: sim.CA(), ServiceAccount: service})
			loggedIn <- err
		}()
		g.Consistently(loggedIn, "50ms").ShouldNot(Receive())
		g.Expect(tokens.stored).To(BeZero())
		return nil
	})

	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(loggedIn).Should(Receive(BeNil()))
	g.Expect(tokens.stored).To(Equal(1))
}
