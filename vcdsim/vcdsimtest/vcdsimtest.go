// SPDX-License-Identifier: Apache-2.0

// Package vcdsimtest starts simulators in tests with one line.
package vcdsimtest

import (
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Start starts a simulator and closes it when the test ends. Errors fail the test. If the model of cfg is empty, it
// is vcdsim.K8sTenant.
func Start(tb testing.TB, cfg vcdsim.Config) *vcdsim.Simulator {
	tb.Helper()
	if len(cfg.Model.Orgs) == 0 {
		cfg.Model = vcdsim.K8sTenant()
	}
	sim, err := vcdsim.New(cfg)
	if err != nil {
		tb.Fatalf("making a simulator: %v", err)
	}
	if err := sim.Start(); err != nil {
		tb.Fatalf("starting a simulator: %v", err)
	}
	tb.Cleanup(func() {
		if err := sim.Close(); err != nil {
			tb.Errorf("closing a simulator: %v", err)
		}
	})
	return sim
}
