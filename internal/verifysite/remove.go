// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// removeOne removes an object after it has verified again that the object belongs to the run. It ignores objects that
// no longer exist.
func (m remover) removeOne(ctx context.Context, x Leftover) error {
	for {
		run, err := m.owner(ctx, x)
		switch {
		case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden):
			return nil
		case err != nil:
			return err
		case run != x.Run:
			return errors.New("it is no longer marked, or contains other objects")
		}
		again, err := m.removeStep(ctx, x)
		if err != nil || !again {
			return ignoreGone(err)
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, vcd.ErrNotFound) {
		return nil
	}
	return err
}

// removeStep takes the next step in the removal of an object, and reports whether another step may follow.
func (m remover) removeStep(ctx context.Context, x Leftover) (again bool, err error) {
	switch x.kind {
	case kindVApp:
		if err := m.detachDisks(ctx, x); err != nil {
			return false, err
		}
		return true, m.calls.finish(ctx, func() (vcd.Task, error) { return m.calls.session.VApps.DeleteVApp(ctx, x.id) })
	case kindEntity:
		return false, m.removeEntity(ctx, x.id)
	default:
		return false, m.calls.do(ctx, vcd.RawCall{
			Method:  http.MethodDelete,
			Path:    x.path,
			JSON:    x.kind != kindDisk,
			Version: x.version,
		})
	}
}

// errForeignDisk means that a vApp cannot be removed because a disk of another owner is attached to a VM.
var errForeignDisk = errors.New("a disk of another owner is attached to a VM: detach it in VCD")

// detachDisks detaches the independent disks of a run from the VMs in its vApp.
func (m remover) detachDisks(ctx context.Context, vApp Leftover) error {
	details, err := m.calls.session.VApps.Details(ctx, vApp.id)
	if err != nil {
		return err
	}
	for _, vm := range details.Children {
		for _, disk := range vm.IndependentDisks() {
			run, err := m.owner(ctx, Leftover{Name: disk.Name, kind: kindDisk, path: diskPath(disk.ID)})
			if err != nil {
				return fmt.Errorf("reading disk %s: %w", disk.Name, err)
			}
			if run != vApp.Run {
				return errForeignDisk
			}
			detach := func() (vcd.Task, error) { return m.calls.session.VMs.DetachDisk(ctx, vm.ID, disk.ID) }
			if err := m.calls.finish(ctx, detach); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeEntity removes an entity. VCD allows this only after an attempt to resolve the entity, even a failed one.
func (m remover) removeEntity(ctx context.Context, id string) error {
	entity, err := m.calls.session.Entities.Get(ctx, id)
	if err != nil {
		return err
	}
	if entity.State == vcd.EntityPreCreated {
		if _, err := m.calls.session.Entities.Resolve(ctx, id); err != nil {
			return err
		}
	}
	return m.calls.session.Entities.Delete(ctx, id)
}
