// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/freeze"
)

// The format of dumps. A change of the store that cannot read older dumps increments the version.
const (
	dumpFormat  = "vcdsim"
	dumpVersion = 2
)

// A dump is the whole simulated state: everything in the store and in ids.
type dump struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	Time    time.Time       `json:"time"`
	IDs     json.RawMessage `json:"ids"`
	Store   json.RawMessage `json:"store"`
}

// frozenIDs are ids without what only reads them.
type frozenIDs struct {
	Seed  int64
	Count map[string]int
	MACs  int
	Dice  []byte
}

// Dump writes everything that is simulated as JSON: the model, all entities, documents, metadata, access settings, API
// clients, sessions with their tokens, passwords, running tasks and leases, and the next ids. Nothing is redacted: keep
// it as safe as the passwords in it. It does not contain the simulator's configuration (profile, version, assumptions,
// cells), faults, counters or the request log.
func (s *Simulator) Dump(w io.Writer) error {
	d, err := s.freeze()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(d); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

func (s *Simulator) freeze() (*dump, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dice, err := s.ids.dice.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("dumping the random numbers: %w", err)
	}
	d := &dump{Format: dumpFormat, Version: dumpVersion, Time: s.clock.Now()}
	if d.IDs, err = freeze.Freeze(&frozenIDs{
		Seed:  s.ids.seed,
		Count: s.ids.count,
		MACs:  s.ids.macs,
		Dice:  dice,
	}); err != nil {
		return nil, fmt.Errorf("dumping: %w", err)
	}
	if d.Store, err = freeze.Freeze(s.store); err != nil {
		return nil, fmt.Errorf("dumping: %w", err)
	}
	return d, nil
}

// Restore replaces everything that is simulated by a dump, as restoring VCD's database does: what was made
// since is gone, its sessions too, what was deleted is back, and the time goes on from now; tasks and leases that ended
// meanwhile end at once. Ids of what is lost are not given again. A clock that is behind the dump is moved to its time.
// On an error nothing has changed.
func (s *Simulator) Restore(r io.Reader) error {
	var d dump
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return fmt.Errorf("reading the dump: %w", err)
	}
	if d.Format != dumpFormat {
		return fmt.Errorf("reading the dump: it is not a dump of vcdsim")
	}
	if d.Version != dumpVersion {
		return fmt.Errorf("reading the dump: version %d is not %d", d.Version, dumpVersion)
	}
	fresh := newStore(Model{})
	if err := freeze.Thaw(d.Store, fresh); err != nil {
		return fmt.Errorf("reading the dump's store: %w", err)
	}
	var numbers frozenIDs
	if err := freeze.Thaw(d.IDs, &numbers); err != nil {
		return fmt.Errorf("reading the dump's ids: %w", err)
	}
	next := newIDs(numbers.Seed)
	if err := next.dice.UnmarshalBinary(numbers.Dice); err != nil {
		return fmt.Errorf("reading the dump's random numbers: %w", err)
	}
	next.count = numbers.Count
	next.macs = numbers.MACs
	if c, ok := s.clock.(interface{ Advance(d time.Duration) }); ok {
		if behind := d.Time.Sub(s.clock.Now()); behind > 0 {
			c.Advance(behind)
		}
	}
	s.replace(fresh, next)
	return nil
}

// replace swaps the present state for a restored one.
func (s *Simulator) replace(fresh *store, next *ids) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next.count == nil {
		next.count = map[string]int{}
	}
	for kind, n := range s.ids.count {
		next.count[kind] = max(next.count[kind], n)
	}
	next.macs = max(next.macs, s.ids.macs)
	fresh.alarmCount = max(fresh.alarmCount, s.store.alarmCount)
	old := s.store
	s.store = fresh
	s.ids = next
	s.guests.restore(old)
	s.alarms.rearm()
	s.settle()
}

// restore makes the guests match a restored store: guests of lost VMs end, those of VMs that are on in the dump
// and were off boot.
func (g *guests) restore(old *store) {
	for _, vm := range sorted(old.vms) {
		if g.sim.store.vms[vm.ID] == nil {
			g.notify(vm.ID, Guest.Delete)
			delete(g.queues, vm.ID)
		}
	}
	if g.guest == nil {
		return
	}
	for _, vm := range sorted(g.sim.store.vms) {
		g.restoreOne(vm, old.vms[vm.ID])
	}
}

// restoreOne makes one guest match its VM; was is the VM before, nil if there was none.
func (g *guests) restoreOne(vm, was *VM) {
	if was != nil {
		if was.Status == vm.Status && was.Boot.Generation == vm.Boot.Generation {
			return
		}
		if was.Status == PoweredOn {
			g.notify(vm.ID, Guest.PowerOff)
		}
	}
	if vm.Status != PoweredOn || !vm.Boot.Due.IsZero() {
		return // off, or an alarm boots it
	}
	if was != nil {
		vm.Boot.Generation = max(vm.Boot.Generation, was.Boot.Generation)
	}
	g.boot(vm)
}
