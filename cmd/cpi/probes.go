// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	cloudconfig "k8s.io/cloud-provider/app/config"
	genericcontrollermanager "k8s.io/controller-manager/app"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
)

const (
	// probeAge is the maximum age of the machine list of a ready process.
	probeAge = 2 * time.Minute
	// probeTimeout is the time limit for a response of the cloud.
	probeTimeout = 5 * time.Second
)

// A readiness reports whether the cloud responds. A process that is not the leader makes no requests to the cloud. It
// is ready to take over if it has the required rights.
type readiness struct {
	machines cpi.Machines
	// rights returns an error if the process lacks rights of its manifest. Nil means that it requires none.
	rights  func(ctx context.Context) error
	leads   atomic.Bool
	unready atomic.Bool
}

// Start enables requests to the cloud, because this process is the leader.
func (r *readiness) Start(context.Context) { r.leads.Store(true) }

// ServeHTTP answers a probe. It logs changes, but an outage does not end the process.
func (r *readiness) ServeHTTP(to http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	if r.rights != nil {
		if err := r.rights(ctx); err != nil {
			r.reject(to, err, "load balancers cannot be reconciled: apply the manifest of this release (see the log)")
			return
		}
	}
	if r.leads.Load() {
		if _, err := r.machines.Snapshot(ctx, probeAge); err != nil {
			r.reject(to, err, "the cloud is not available: see the log")
			return
		}
	}
	if r.unready.Swap(false) {
		klog.InfoS("Ready again")
	}
	if !r.leads.Load() {
		fmt.Fprintln(to, "ok: another process is the leader")
		return
	}
	fmt.Fprintln(to, "ok")
}

// reject responds that the process is not ready. The response has no details, because probes require no rights.
func (r *readiness) reject(to http.ResponseWriter, err error, summary string) {
	if !r.unready.Swap(true) {
		klog.ErrorS(err, "Not ready: waiting for a correction", "summary", summary)
	}
	http.Error(to, summary, http.StatusServiceUnavailable)
}

// serveProbes serves the endpoints that k8s.io/cloud-provider's server does not support, with the certificate and
// authorization of that server.
func serveProbes(
	c *cloudconfig.CompletedConfig, address string, ready http.Handler, debug map[string]http.Handler,
	stop <-chan struct{},
) error {
	if address == "" || c.SecureServing == nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("--probe-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/readyz", ready)
	for path, handler := range debug {
		mux.Handle(path, handler)
	}
	serving := *c.SecureServing
	serving.Listener = listener
	handler := genericcontrollermanager.BuildHandlerChain(mux, &c.Authorization, &c.Authentication)
	if _, _, err := serving.Serve(handler, 0, stop); err != nil {
		return fmt.Errorf("serving %s: %w", address, err)
	}
	return nil
}
