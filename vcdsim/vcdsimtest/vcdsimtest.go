// SPDX-License-Identifier: Apache-2.0

// Package vcdsimtest starts simulators in tests, in one line.
package vcdsimtest

import (
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Start starts a simulator that is closed when the test ends; what goes wrong ends the test. The model of a zero Config
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
