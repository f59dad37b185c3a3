// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Cloud is the simulated site, with everything that nouns require to serve requests and to change it.
type Cloud struct {
	Clock    clock.Clock
	Profile  Profile
	Log      *slog.Logger
	Lifetime time.Duration          // of access tokens
	Unknown  func(operation string) // records a requested operation that is not simulated
	Chain    func() string          // PEM of the site's certificates

	Ctx context.Context //nolint:containedctx // the simulator's lifetime, for its guests

	Mu      Guard // guards the fields below
	Store   *store.Store
	IDs     *ids.Source
	Assume  Assumptions
	Pending []func() // called after the current request is served
	// Probed contains the probed health of pool members, by URN of the pool.
	Probed map[string]map[netip.AddrPort]bool

	Tasks  *Tasks
	Alarms *Alarms
	Guests GuestPower
}

// GuestPower starts and ends the guests of VMs.
type GuestPower interface {
	Boot(vm *store.VM)
	// Halt ends the guest of a VM that is no longer on. gently shuts it down through VMware Tools.
	Halt(vm *store.VM, gently bool)
	Suspend(vm *store.VM)
	Resume(vm *store.VM)
	// Forget ends the guest of a deleted VM.
	Forget(vmID string)
}

// Settle runs the functions in Pending.
func (s *Cloud) Settle() {
	for len(s.Pending) > 0 {
		next := s.Pending[0]
		s.Pending = s.Pending[1:]
		next()
	}
}

// State returns a copy of everything in the store.
func (s *Cloud) State() store.State {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Store.Snapshot()
}
