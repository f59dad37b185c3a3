// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A test starts a simulator in one line, passes its URL and CA to the client under test, and checks the state
// afterwards.
func Example() {
	sim, err := vcdsim.New(vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant, Seed: 1})
	if err != nil {
		panic(err)
	}
	if err := sim.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = sim.Close() }()

	sim.Faults().Add(vcdsim.Fault{
		Operation: "GET /api/query type=vm",
		Count:     1,
		Status:    503,
		Header:    map[string]string{"Retry-After": "5"},
	})
	sim.Edit(func(e *vcdsim.Editor) { e.SetPassword("acme", "capvcd", "changed") })

	fmt.Println(len(sim.State().VMs), len(sim.Unhandled()))
	// Output: 0 0
}
