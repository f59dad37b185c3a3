// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/guests"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// The format of dumps. Increment the version when the store can no longer read older dumps.
const (
	dumpFormat  = "vcdsim"
	dumpVersion = 3
)

// A dump is the whole simulated state: everything in the store and the state of the IDs.
type dump struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Time    time.Time    `json:"time"`
	IDs     dumpedIDs    `json:"ids"`
	Store   *store.Store `json:"store"`
}

// A dumpHeader identifies the format of a file before the rest is read.
type dumpHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// dumpedIDs is the state of an ids.Source without derived fields.
type dumpedIDs struct {
	Seed  int64
	Count map[string]int
	MACs  int
	Dice  []byte // state of the random number generator
}

// Encode returns the dump as one line of JSON. It holds the lock so that the store does not change in the meantime.
func Encode(s *cloud.Cloud) ([]byte, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	dice, err := s.IDs.Dice.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("dumping the random numbers: %w", err)
	}
	encoded, err := json.Marshal(dump{
		Format:  dumpFormat,
		Version: dumpVersion,
		Time:    s.Clock.Now(),
		IDs: dumpedIDs{
			Seed:  s.IDs.Seed,
			Count: s.IDs.Count,
			MACs:  s.IDs.MACs,
			Dice:  dice,
		},
		Store: s.Store,
	})
	if err != nil {
		return nil, fmt.Errorf("dumping: %w", err)
	}
	return append(encoded, '\n'), nil
}

// Restore replaces everything that is simulated by a dump. An error leaves the state unchanged.
func Restore(s *cloud.Cloud, running *guests.Guests, r io.Reader) error {
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
	if c, ok := s.Clock.(interface{ Advance(d time.Duration) }); ok {
		if behind := d.Time.Sub(s.Clock.Now()); behind > 0 {
			c.Advance(behind)
		}
	}
	replace(s, running, d.Store, next)
	return nil
}

// readDump reads a dump of this version. Unknown fields are errors, because their content would be lost.
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

// replace replaces the current state by a restored one.
func replace(s *cloud.Cloud, running *guests.Guests, fresh *store.Store, next *ids.Source) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if next.Count == nil {
		next.Count = map[string]int{}
	}
	for kind, n := range s.IDs.Count {
		next.Count[kind] = max(next.Count[kind], n)
	}
	next.MACs = max(next.MACs, s.IDs.MACs)
	fresh.AlarmCount = max(fresh.AlarmCount, s.Store.AlarmCount)
	old := s.Store
	s.Store = fresh
	s.IDs = next
	running.Restore(old)
	s.Alarms.Rearm()
	s.Settle()
}
