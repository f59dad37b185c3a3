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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/wirelog"
)

const (
	// probeAge is how old what is known of the machines may be for us to count as ready.
	probeAge = 2 * time.Minute
	// probeTimeout is how long a probe waits for VCD.
	probeTimeout = 5 * time.Second
)

// A readiness says whether VCD answers us. While another process leads we have nothing to ask VCD, and are ready to take over.
type readiness struct {
	machines cpi.Machines
	leads    atomic.Bool
	unready  atomic.Bool
}

// Start begins to ask VCD.
func (r *readiness) Start(context.Context) { r.leads.Store(true) }

// ServeHTTP answers a probe. That it changes is logged: an outage is no reason to end, but one to be told.
func (r *readiness) ServeHTTP(to http.ResponseWriter, req *http.Request) {
	if !r.leads.Load() {
		fmt.Fprintln(to, "ok: another one leads")
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
	defer cancel()
	_, err := r.machines.Snapshot(ctx, probeAge)
	if err != nil {
		if !r.unready.Swap(true) {
			klog.ErrorS(err, "VCD cannot be worked with: nothing is done until it can")
		}
		http.Error(to, "VCD cannot be worked with: the log says why", http.StatusServiceUnavailable) // to whoever asks
		return
	}
	if r.unready.Swap(false) {
		klog.InfoS("VCD can be worked with again")
	}
	fmt.Fprintln(to, "ok")
}

// serveProbes serves what k8s.io/cloud-provider's server has no place for, with its certificate and to those it lets in.
func serveProbes(c *cloudconfig.CompletedConfig, address string, ready, wireLog http.Handler, stop <-chan struct{}) error {
	if address == "" || c.SecureServing == nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("--probe-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/readyz", ready)
	mux.Handle(wirelog.Path, wireLog)
	serving := *c.SecureServing
	serving.Listener = listener
	handler := genericcontrollermanager.BuildHandlerChain(mux, &c.Authorization, &c.Authentication)
	if _, _, err := serving.Serve(handler, 0, stop); err != nil {
		return fmt.Errorf("serving %s: %w", address, err)
	}
	return nil
}
