// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A cloud is what is simulated, with what every noun needs to answer for it and to change it.
type cloud struct {
	clock    Clock
	profile  Profile
	log      *slog.Logger
	lifetime time.Duration          // of access tokens
	unknown  func(operation string) // notes an operation that was asked for and is not simulated

	ctx context.Context //nolint:containedctx // the simulator's lifetime, for its guests

	mu      sync.Mutex // guards the fields below
	store   *store.Store
	ids     *ids.Source
	assume  Assumptions
	pending []func() // run when the request at hand is answered
	// probed are the members of load balancers' pools that probes found to answer or not, by URN of the pool.
	probed map[string]map[netip.AddrPort]bool

	tasks  *tasks
	alarms *alarms
	guests guestPower
}

// guestPower starts and ends the guests of VMs.
type guestPower interface {
	boot(vm *store.VM)
	// halt ends the guest of a VM that is no longer on; gently is through VMware Tools.
	halt(vm *store.VM, gently bool)
	suspend(vm *store.VM)
	resume(vm *store.VM)
	// forget ends the guest of a VM that is deleted.
	forget(vmID string)
}

// settle runs what was deferred until the answer was made.
func (s *cloud) settle() {
	for len(s.pending) > 0 {
		next := s.pending[0]
		s.pending = s.pending[1:]
		next()
	}
}
