// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// entities reads and writes entities. *[vcd.Entities] implements it.
type entities interface {
	Get(ctx context.Context, id string) (vcd.Entity, error)
	Update(ctx context.Context, read vcd.Entity, content json.RawMessage) (vcd.Entity, error)
}

// errNoETag means that VCD returned no version of an entity, so that a write could undo that of another client.
var errNoETag = errors.New("VCD returned no version (ETag) of the entity")

// A Writer changes entities beside other writers.
type Writer struct {
	In    entities
	Tries int           // how often in all an entity is read and written, if others write it at the same time
	Pause time.Duration // before the second try, up to twice that long at random; doubles each time

	// Last is the version that an earlier Update returned. It saves the read: VCD refuses the write if the entity has
	// changed since, and Update then reads it. Nil: the entity is read.
	Last *vcd.Entity
}

// Update applies change to the content of an entity. It writes only if change returns another content, and only to the
// version that change saw. It returns the current version, and whether it wrote. If change returns an error, Update
// returns that error and writes nothing.
func (w Writer) Update(
	ctx context.Context, id string, change func(vcd.Entity) (json.RawMessage, error),
) (entity vcd.Entity, wrote bool, err error) {
	if w.Last != nil && w.Last.ID == id {
		entity, wrote, err = w.write(ctx, *w.Last, change)
		if !errors.Is(err, vcd.ErrChanged) {
			return entity, wrote, err
		}
	}
	pause := wait.Backoff{Duration: w.Pause, Factor: 2, Jitter: 1, Steps: w.Tries}
	for try := 1; ; try++ {
		entity, wrote, err = w.try(ctx, id, change)
		if !errors.Is(err, vcd.ErrChanged) || try >= w.Tries {
			return entity, wrote, err
		}
		select {
		case <-ctx.Done():
			return entity, false, ctx.Err()
		case <-time.After(pause.Step()):
		}
	}
}

// try reads the entity and writes the change.
func (w Writer) try(
	ctx context.Context, id string, change func(vcd.Entity) (json.RawMessage, error),
) (entity vcd.Entity, wrote bool, err error) {
	read, err := w.In.Get(ctx, id)
	if err != nil {
		return read, false, err
	}
	return w.write(ctx, read, change)
}

// write writes the change to a version of the entity.
func (w Writer) write(
	ctx context.Context, read vcd.Entity, change func(vcd.Entity) (json.RawMessage, error),
) (entity vcd.Entity, wrote bool, err error) {
	content, err := change(read)
	switch {
	case err != nil:
		return read, false, fmt.Errorf("changing entity %s: %w", read.ID, err)
	case string(content) == string(read.Content):
		return read, false, nil
	case read.ETag == "":
		return read, false, errNoETag
	}
	written, err := w.In.Update(ctx, read, content)
	if err != nil {
		return read, false, err
	}
	return written, true, nil
}
