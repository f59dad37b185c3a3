// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Serving says how webhooks and diagnostics are served.
type Serving struct {
	Address  string
	Insecure bool // by HTTP, without authentication

	TLSMinVersion   string
	TLSCipherSuites []string
	TLSCurves       []int32
}

// TLS returns what configures TLS.
func (s Serving) TLS() ([]func(*tls.Config), error) {
	version, err := cliflag.TLSVersion(s.TLSMinVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of TLS: %w", err)
	}
	suites, err := cliflag.TLSCipherSuites(s.TLSCipherSuites)
	if err != nil {
		return nil, fmt.Errorf("reading the cipher suites: %w", err)
	}
	curves, err := cliflag.TLSCurvePreferences(s.TLSCurves)
	if err != nil {
		return nil, fmt.Errorf("reading the key exchanges: %w", err)
	}
	return []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = version
		c.CipherSuites = suites
		c.CurvePreferences = curves
	}}, nil
}

// Metrics returns the options of the server of metrics. The debug handlers, by path, are served too if it is protected.
func (s Serving) Metrics(tlsOptions []func(*tls.Config), debug map[string]http.Handler) metricsserver.Options {
	if s.Insecure {
		return metricsserver.Options{BindAddress: s.Address}
	}
	handlers := map[string]http.Handler{
		"/debug/flags/v":       http.HandlerFunc(setLogLevel),
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	maps.Copy(handlers, debug)
	return metricsserver.Options{
		BindAddress:    s.Address,
		SecureServing:  true,
		TLSOpts:        tlsOptions,
		FilterProvider: protect,
		ExtraHandlers:  handlers,
	}
}

// maxLevel bounds the body of a request that sets the level of logs.
const maxLevel = 16

// setLogLevel sets how much is logged to the number that is the body of a PUT.
func setLogLevel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		http.Error(w, "PUT a number", http.StatusMethodNotAllowed)
		return
	}
	level, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevel))
	if err == nil {
		_, err = logs.GlogSetter(string(level))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
}
