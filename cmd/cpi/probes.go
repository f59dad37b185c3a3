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
	// probeAge is the maximum age of the list of machines of a ready process.
	probeAge = 2 * time.Minute
	// probeTimeout is how long a probe waits for the cloud.
	probeTimeout = 5 * time.Second
)

// A readiness reports whether the cloud answers. A process that does not lead makes no calls to it, and is ready to
// take over if it has the rights.
type readiness struct {
	machines cpi.Machines
	// rights fails if the process lacks rights of its manifest; nil: it needs none.
	rights  func(ctx context.Context) error
	leads   atomic.Bool
	unready atomic.Bool
}

// Start makes probes call the cloud.
func (r *readiness) Start(context.Context) { r.leads.Store(true) }

// ServeHTTP answers a probe. Changes are logged: an outage is no reason to end.
func (r *readiness) ServeHTTP(to http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	if r.rights != nil {
		if err := r.rights(ctx); err != nil {
			r.refuse(to, err, "load balancers cannot be reconciled: apply the manifest of this release (see the "+
				"log)")
			return
		}
	}
	if r.leads.Load() {
		if _, err := r.machines.Snapshot(ctx, probeAge); err != nil {
			r.refuse(to, err, "the cloud is not available: see the log")
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

// refuse answers that the process is not ready, without details: probes need no rights.
func (r *readiness) refuse(to http.ResponseWriter, err error, summary string) {
	if !r.unready.Swap(true) {
		klog.ErrorS(err, "Not ready: waiting for a correction", "summary", summary)
	}
	http.Error(to, summary, http.StatusServiceUnavailable)
}

// serveProbes serves what k8s.io/cloud-provider's server cannot, with its certificate and its authorization.
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
