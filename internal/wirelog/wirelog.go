// SPDX-License-Identifier: Apache-2.0

// Package wirelog logs requests to VMware Cloud Director, without secrets and bodies, while the log is enabled by a
// signal or an HTTP request. The manager and the cloud controller manager use it.
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
	// level is the log verbosity from which every request to VCD is logged.
	level = 7
	// Path is the HTTP path that controls the log. It is served and protected like the metrics.
	Path = "/debug/vcd-wire-log"
	// Max is the longest time for which the log can be enabled.
	Max = time.Hour
	// Variable is the environment variable that enables the log for as long as the program runs. Any value except one
	// that means false enables it. CAPVCD and CPI use it to log the requests of go-vcloud-director, with secrets and
	// bodies.
	Variable = "GOVCD_LOG_ON_SCREEN"
)

// Wanted reports whether the environment enables the log.
func Wanted(getenv func(string) string) bool {
	value := getenv(Variable)
	on, err := strconv.ParseBool(value)
	return on || err != nil && value != ""
}

// A Log logs requests to VCD, without secrets and bodies. It logs always if Variable is set or the verbosity is high
// enough, otherwise while it is enabled at run time.
type Log struct {
	log    logr.Logger
	set    func(func(vcd.Exchange))
	clock  clock.WithDelayedExecution
	always bool

	mu    sync.Mutex
	until time.Time // zero: off
	timer clock.Timer
}

// New returns a log that is disabled, unless wanted is true or the verbosity of log is high enough. It calls set to
// register or remove the function that receives each request.
func New(log logr.Logger, wanted bool, set func(func(vcd.Exchange)), c clock.WithDelayedExecution) *Log {
	w := &Log{log: log, set: set, clock: c, always: wanted || log.V(level).Enabled()}
	if w.always {
		set(w.exchange)
	}
	return w
}

// OnSignal enables the log for d, or disables it, on each SIGUSR1 until ctx ends.
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

// switchFor enables the log for d from now on. 0 disables it.
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
	w.log.Info("Enabled the log of requests to VCD", "duration", d.String())
}

// expire disables the log, unless its time was changed in the meantime.
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

// left returns how long the log stays enabled. It returns 0 if the log is disabled or always enabled.
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

// Handler returns an HTTP handler that controls the log. GET returns its state. PUT and POST enable it for the duration
// in the parameter "for", which defaults to fallback. DELETE disables it.
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
