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
}

// Update changes the content of an entity, if change does, and only the version that was read. It reports whether it
// wrote. An error of change comes back, and nothing is written.
func (w Writer) Update(
	ctx context.Context, id string, change func(vcd.Entity) (json.RawMessage, error),
) (entity vcd.Entity, wrote bool, err error) {
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

func (w Writer) try(ctx context.Context, id string, change func(vcd.Entity) (json.RawMessage, error)) (vcd.Entity, bool,
	error,
) {
	read, err := w.In.Get(ctx, id)
	if err != nil {
		return read, false, err
	}
	content, err := change(read)
	switch {
	case err != nil:
		return read, false, fmt.Errorf("changing entity %s: %w", id, err)
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
