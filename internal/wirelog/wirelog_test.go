// SPDX-License-Identifier: Apache-2.0

package wirelog

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
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

// calls counts the calls in the log.
func (l *lines) calls() int { return strings.Count(l.text(), "Sent a request to VCD") }

// A logged session is a session whose calls may be logged.
type logged struct {
	*lines

	wire    *Log
	clock   *clocktesting.FakeClock
	session *vcd.Session
}

// newLogged logs in to a simulated VCD, whose password is a canary.
func newLogged(t *testing.T, verbosity int, environment ...string) *logged {
	t.Helper()
	g := NewWithT(t)
	model := vcdsim.K8sTenant()
	model.Orgs[1].Users[1].Password = "canary-password"
	sim, err := vcdsim.New(vcdsim.Config{Model: model, Profile: vcdsim.Instant, Seed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	l := &logged{lines: &lines{}, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	pool := vcd.NewPool(vcd.PoolOptions{})
	l.wire = New(l.logger(verbosity), Wanted(variables(environment)), pool.SetWireLog, l.clock)
	l.session, err = pool.Session(t.Context(), vcd.Config{
		Site:        sim.URL(),
		Org:         "acme",
		CABundle:    sim.CA(),
		Credentials: vcd.Credentials{Username: "capvcd", Password: "canary-password"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	return l
}

// call makes one call.
func (l *logged) call(t *testing.T) {
	t.Helper()
	_, err := l.session.VDCs.FindVDC(t.Context(), "nowhere")
	NewWithT(t).Expect(err).To(MatchError(vcd.ErrNotFound))
}

func TestCallsAreLoggedFromVerbositySeven(t *testing.T) {
	for verbosity, want := range map[int]bool{0: false, 6: false, 7: true, 10: true} {
		g := NewWithT(t)
		l := newLogged(t, verbosity)

		l.call(t)

		g.Expect(strings.Contains(l.text(), `"operation"="POST /cloudapi/1.0.0/sessions"`)).To(Equal(want), "at %d",
			verbosity)
		g.Expect(l.text()).NotTo(ContainSubstring("canary"))
		g.Expect(l.text()).NotTo(ContainSubstring("Bearer "))
	}
}

// variables sets the log variable to the first of some values.
func variables(values []string) func(string) string {
	return func(name string) string {
		if name != Variable || len(values) == 0 {
			return ""
		}
		return values[0]
	}
}

func TestTheVariableOfCAPVCDEnablesTheLog(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "0": false, "true": true, "1": true, "yes": true} {
		g := NewWithT(t)
		l := newLogged(t, 0, value)

		l.call(t)

		g.Expect(strings.Contains(l.text(), "Sent a request to VCD")).To(Equal(want), value)
		g.Expect(l.text()).NotTo(ContainSubstring("canary"), value)
	}
}

func TestASignalTogglesTheLog(t *testing.T) {
	g := NewWithT(t)
	l := newLogged(t, 0)
	l.wire.OnSignal(t.Context(), time.Minute)

	g.Expect(syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)).To(Succeed())
	g.Eventually(l.text).Should(ContainSubstring("Enabled the log"))
	l.call(t)
	g.Expect(l.calls()).To(Equal(1))

	g.Expect(syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)).To(Succeed())
	g.Eventually(l.text).Should(ContainSubstring("Disabled the log"))
	l.call(t)
	g.Expect(l.calls()).To(Equal(1))
}

func TestTheLogEndsAutomatically(t *testing.T) {
	g := NewWithT(t)
	l := newLogged(t, 0)

	l.wire.switchFor(time.Minute)
	l.clock.Step(59 * time.Second)
	l.call(t)
	g.Expect(l.calls()).To(Equal(1))
	l.wire.switchFor(time.Minute) // once more, which the first minute does not end
	l.clock.Step(59 * time.Second)
	l.call(t)
	g.Expect(l.calls()).To(Equal(2))
	l.clock.Step(time.Second)

	g.Eventually(l.text).Should(ContainSubstring("Disabled the log"))
	l.call(t)
	g.Expect(l.calls()).To(Equal(2))
}

func TestTheLogStaysOnIfAlwaysEnabled(t *testing.T) {
	g := NewWithT(t)
	l := newLogged(t, level)
	l.wire.switchFor(time.Minute)
	l.wire.switchFor(0)
	before := l.calls()

	l.call(t)

	g.Expect(l.calls()).To(Equal(before + 1))
}

func TestTheLogIsToggledByHTTP(t *testing.T) {
	g := NewWithT(t)
	l := newLogged(t, 0)
	handler := l.wire.Handler(10 * time.Minute)
	ask := func(method, query string) (int, string) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, Path+query, http.NoBody))
		return answer.Code, answer.Body.String()
	}
	steps := []struct {
		method, query string
		status        int
		answer        string
		logged        int
	}{
		{http.MethodGet, "", 200, `"on":false`, 0},
		{http.MethodPut, "", 200, `"left":"10m0s","on":true`, 1},
		{http.MethodPut, "?for=30s", 200, `"left":"30s"`, 1},
		{http.MethodPut, "?for=2h", 400, "at most 1h0m0s", 1},
		{http.MethodPut, "?for=soon", 400, "duration", 1},
		{http.MethodPut, "?for=-1s", 400, "duration", 1},
		{http.MethodPatch, "", 405, "DELETE", 1},
		{http.MethodGet, "", 200, `"left":"30s"`, 1},
		{http.MethodDelete, "", 200, `"on":false`, 0},
		{http.MethodDelete, "", 200, `"on":false`, 0},
	}
	for _, step := range steps {
		status, answer := ask(step.method, step.query)
		g.Expect(status).To(Equal(step.status), step.method+step.query)
		g.Expect(answer).To(ContainSubstring(step.answer))

		before := l.calls()
		l.call(t)
		g.Expect(l.calls()-before).To(Equal(step.logged), "after %s %s", step.method, step.query)
	}
}
