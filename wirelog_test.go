package main

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// lines collects a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(verbosity int) logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{Verbosity: verbosity})
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// call logs in to a site that nobody answers at.
func call(t *testing.T, pool *vcd.Pool, org string) {
	t.Helper()
	_, err := pool.Session(t.Context(), vcd.Config{
		Site: "https://127.0.0.1:1", Org: org, Credentials: vcd.Credentials{Username: "u", Password: "canary"},
	})
	NewWithT(t).Expect(err).To(MatchError(vcd.ErrUnavailable))
}

func TestCallsAreLoggedFromVerbositySeven(t *testing.T) {
	for verbosity, logged := range map[int]bool{0: false, 6: false, 7: true, 10: true} {
		g := NewWithT(t)
		log := &lines{}
		pool := vcd.NewPool(vcd.PoolOptions{})

		startWireLog(t.Context(), log.logger(verbosity), pool.SetWireLog)
		call(t, pool, "acme")

		g.Expect(strings.Contains(log.text(), `"operation"="GET /api/versions"`)).To(Equal(logged), "at %d", verbosity)
		g.Expect(log.text()).NotTo(ContainSubstring("canary"))
	}
}

func TestASignalSwitchesTheLogOfCalls(t *testing.T) {
	g := NewWithT(t)
	log := &lines{}
	pool := vcd.NewPool(vcd.PoolOptions{})
	startWireLog(t.Context(), log.logger(0), pool.SetWireLog)

	g.Expect(syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)).To(Succeed())
	g.Eventually(log.text).Should(ContainSubstring(`"on"=true`))
	call(t, pool, "acme")
	g.Expect(log.text()).To(ContainSubstring("Called VCD"))

	g.Expect(syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)).To(Succeed())
	g.Eventually(log.text).Should(ContainSubstring(`"on"=false`))
	before := strings.Count(log.text(), "Called VCD")
	call(t, pool, "other")
	g.Expect(strings.Count(log.text(), "Called VCD")).To(Equal(before))
}
