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

// Serving configures the servers of webhooks and diagnostics.
type Serving struct {
	Address  string
	Insecure bool // HTTP without authentication

	TLSMinVersion   string
	TLSCipherSuites []string
	TLSCurves       []int32
}

// TLS returns functions that apply the TLS settings.
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

// Metrics returns the options of the metrics server. Unless it is insecure, it also serves the debug handlers, by path.
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

// maxLevel limits the body of a request that sets the log level, in bytes.
const maxLevel = 16

// setLogLevel sets the log level to the number in the body of a PUT request.
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
