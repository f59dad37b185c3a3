package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// wireLogLevel is the verbosity from which on every call to VCD is logged.
const wireLogLevel = 7

// startWireLog logs calls to VCD, without secrets and bodies, when the verbosity is high enough. Each SIGUSR1 switches that on
// or off, so that nobody has to restart a manager to see what it does.
func startWireLog(ctx context.Context, log logr.Logger, set func(func(vcd.Exchange))) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	on := log.V(wireLogLevel).Enabled()
	switchWireLog(on, log, set)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				on = !on
				switchWireLog(on, log, set)
				log.Info("Switched the log of calls to VCD", "on", on)
			case <-ctx.Done():
				return
			}
		}
	}()
}

func switchWireLog(on bool, log logr.Logger, set func(func(vcd.Exchange))) {
	if !on {
		set(nil)
		return
	}
	set(func(e vcd.Exchange) {
		values := []any{
			"operation", e.Operation, "url", e.URL, "status", e.Status, "sent", e.Sent, "received", e.Received,
			"took", e.Took.String(), "header", e.Header,
		}
		if e.Err != nil {
			values = append(values, "err", e.Err.Error())
		}
		log.Info("Called VCD", values...)
	})
}
