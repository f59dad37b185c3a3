// SPDX-License-Identifier: Apache-2.0

// Package wirelog logs calls to VMware Cloud Director, without secrets and bodies, while it is switched on, by a signal
// or by HTTP. The manager and the cloud controller manager use it.
package wirelog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// level is the verbosity from which on every call to VCD is logged.
	level = 7
	// Path is where the log is switched by HTTP, beside the metrics and protected like them.
	Path = "/debug/vcd-wire-log"
	// Max is the longest time for which it can be switched on.
	Max = time.Hour
	// Variable switches it on for as long as the program runs, with any value but one that means false. CAPVCD and CPI
	// log the calls of go-vcloud-director with it, with secrets and bodies.
	Variable = "GOVCD_LOG_ON_SCREEN"
)

// Wanted reports whether the environment switches the log on.
func Wanted(getenv func(string) string) bool {
	value := getenv(Variable)
	on, err := strconv.ParseBool(value)
	return on || err != nil && value != ""
}

// A Log logs calls to VCD, without secrets and bodies: always if it is wanted or the verbosity is high enough, otherwise
// while it is switched on, without a restart.
type Log struct {
	log    logr.Logger
	set    func(func(vcd.Exchange))
	clock  clock.WithDelayedExecution
	always bool

	mu    sync.Mutex
	until time.Time // zero: off
	timer clock.Timer
}

// New returns a log that is switched off, unless it is wanted or the verbosity of log is high enough. It sets what is
// called with each call.
func New(log logr.Logger, wanted bool, set func(func(vcd.Exchange)), c clock.WithDelayedExecution) *Log {
	w := &Log{log: log, set: set, clock: c, always: wanted || log.V(level).Enabled()}
	if w.always {
		set(w.exchange)
	}
	return w
}

// OnSignal switches the log on for d, or off, with each SIGUSR1 until ctx ends.
func (w *Log) OnSignal(ctx context.Context, d time.Duration) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				if w.left() > 0 {
					w.switchFor(0)
				} else {
					w.switchFor(d)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// switchFor logs calls for d from now on; 0 ends it.
func (w *Log) switchFor(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if d == 0 {
		w.end()
		return
	}
	until := w.clock.Now().Add(d)
	w.until = until
	w.timer = w.clock.AfterFunc(d, func() { w.expire(until) })
	w.set(w.exchange)
	w.log.Info("Enabled the log of requests to VCD", "for", d.String())
}

// expire ends it in time, unless it was switched again meanwhile.
func (w *Log) expire(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until.Equal(until) {
		w.end()
	}
}

func (w *Log) end() {
	if w.until.IsZero() {
		return
	}
	w.until = time.Time{}
	if !w.always {
		w.set(nil)
	}
	w.log.Info("Disabled the log of requests to VCD")
}

// left returns how long calls will be logged; 0 if they are not, or always.
func (w *Log) left() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until.IsZero() {
		return 0
	}
	return w.until.Sub(w.clock.Now())
}

func (w *Log) exchange(e vcd.Exchange) {
	values := []any{
		"operation",
		e.Operation,
		"url",
		e.URL,
		"status",
		e.Status,
		"sent",
		e.Sent,
		"received",
		e.Received,
		"took",
		e.Took.String(),
		"header",
		e.Header,
	}
	if e.Err != nil {
		values = append(values, "err", e.Err.Error())
	}
	w.log.Info("Sent a request to VCD", values...)
}

// Handler answers GET with the state, PUT and POST with "for" by switching the log on, DELETE by switching it off.
func (w *Log) Handler(fallback time.Duration) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
		case http.MethodPut, http.MethodPost:
			d, err := parseFor(r.URL.Query().Get("for"), fallback)
			if err != nil {
				http.Error(to, err.Error(), http.StatusBadRequest)
				return
			}
			w.switchFor(d)
		case http.MethodDelete:
			w.switchFor(0)
		default:
			to.Header().Set("Allow", "GET, PUT, POST, DELETE")
			http.Error(to, "use GET, PUT or DELETE", http.StatusMethodNotAllowed)
			return
		}
		left := w.left().Round(time.Second)
		to.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(to).Encode(map[string]any{
			"on":     w.always || left > 0,
			"always": w.always,
			"left":   left.String(),
		})
	})
}

func parseFor(value string, fallback time.Duration) (time.Duration, error) {
	if value == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > Max {
		return 0, fmt.Errorf("for=%q must be a duration such as 10m, of at most %s", value, Max)
	}
	return d, nil
}
