// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// The format of dumps. A change of the store that cannot read older dumps increments the version.
const (
	dumpFormat  = "vcdsim"
	dumpVersion = 3
)

// A dump is the whole simulated state: everything in the store and in ids.
type dump struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Time    time.Time    `json:"time"`
	IDs     dumpedIDs    `json:"ids"`
	Store   *store.Store `json:"store"`
}

// A dumpHeader says what a file is before the rest of it is read.
type dumpHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// dumpedIDs are ids without what only reads them.
type dumpedIDs struct {
	Seed  int64
	Count map[string]int
	MACs  int
	Dice  []byte // state of the random numbers
}

// Dump writes everything that is simulated as JSON: the model, all entities, documents, metadata, access settings, API
// clients, sessions with their tokens, passwords, running tasks and leases, and the next ids. Nothing is redacted: keep
// it as safe as the passwords in it. It does not contain the simulator's configuration (profile, version, assumptions,
// cells), faults, counters or the request log.
func (s *Simulator) Dump(w io.Writer) error {
	encoded, err := s.encode()
	if err != nil {
		return err
	}
	if _, err := w.Write(encoded); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	return nil
}

// encode returns the dump as a line of JSON. It holds the lock: the store must not change meanwhile.
func (s *Simulator) encode() ([]byte, error) {
	s.cloud.Mu.Lock()
	defer s.cloud.Mu.Unlock()
	dice, err := s.cloud.IDs.Dice.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("dumping the random numbers: %w", err)
	}
	encoded, err := json.Marshal(dump{
		Format:  dumpFormat,
		Version: dumpVersion,
		Time:    s.cloud.Clock.Now(),
		IDs: dumpedIDs{
			Seed:  s.cloud.IDs.Seed,
			Count: s.cloud.IDs.Count,
			MACs:  s.cloud.IDs.MACs,
			Dice:  dice,
		},
		Store: s.cloud.Store,
	})
	if err != nil {
		return nil, fmt.Errorf("dumping: %w", err)
	}
	return append(encoded, '\n'), nil
}

// Restore replaces everything that is simulated by a dump, as restoring VCD's database does: what was made
// since is gone, its sessions too, what was deleted is back, and the time goes on from now; tasks and leases that ended
// meanwhile end at once. Ids of what is lost are not given again. A clock that is behind the dump is moved to its time.
// On an error nothing has changed.
func (s *Simulator) Restore(r io.Reader) error {
	d, err := readDump(r)
	if err != nil {
		return fmt.Errorf("reading the dump: %w", err)
	}
	next := ids.New(d.IDs.Seed)
	if err := next.Dice.UnmarshalBinary(d.IDs.Dice); err != nil {
		return fmt.Errorf("reading the dump's random numbers: %w", err)
	}
	next.Count = d.IDs.Count
	next.MACs = d.IDs.MACs
	if c, ok := s.cloud.Clock.(interface{ Advance(d time.Duration) }); ok {
		if behind := d.Time.Sub(s.cloud.Clock.Now()); behind > 0 {
			c.Advance(behind)
		}
	}
	s.replace(d.Store, next)
	return nil
}

// readDump reads a dump of this version. A field that it does not know is an error: it would be lost.
func readDump(r io.Reader) (*dump, error) {
	encoded, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var header dumpHeader
	if err := json.Unmarshal(encoded, &header); err != nil {
		return nil, err
	}
	if header.Format != dumpFormat {
		return nil, errors.New("it is not a dump of vcdsim")
	}
	if header.Version != dumpVersion {
		return nil, fmt.Errorf("version %d is not %d", header.Version, dumpVersion)
	}
	d := &dump{Store: store.NewStore(store.Model{})}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, err
	}
	if d.Store == nil {
		return nil, errors.New("it has no store")
	}
	return d, nil
}

// replace swaps the present state for a restored one.
func (s *Simulator) replace(fresh *store.Store, next *ids.Source) {
	s.cloud.Mu.Lock()
	defer s.cloud.Mu.Unlock()
	if next.Count == nil {
		next.Count = map[string]int{}
	}
	for kind, n := range s.cloud.IDs.Count {
		next.Count[kind] = max(next.Count[kind], n)
	}
	next.MACs = max(next.MACs, s.cloud.IDs.MACs)
	fresh.AlarmCount = max(fresh.AlarmCount, s.cloud.Store.AlarmCount)
	old := s.cloud.Store
	s.cloud.Store = fresh
	s.cloud.IDs = next
	s.guests.Restore(old)
	s.cloud.Alarms.Rearm()
	s.cloud.Settle()
}
