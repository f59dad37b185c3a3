// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// unlessLeft is what to do about an entity that cannot be deleted.
const unlessLeft = orNone + " to keep the entity"

// remove deletes the entity of a cluster that is gone, if it is the cluster's own, and lets go of the VCDCluster.
func remove(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	own, err := s.isOwn(ctx)
	if err != nil {
		return phases.Done, err
	}
	if own {
		s.state.beginRemoval()
		out, err := s.sparingly(ctx, s.open, s.findOwn, s.deleteOwn)
		switch {
		case err != nil:
			return out, err
		case out != phases.Done:
			return orLeft(out), nil
		case s.again > 0:
			return phases.Wait(s.again, infrav1.TaskRunningReason, "Waiting to delete the runtime defined entity"), nil
		}
	}
	s.reconciler.states.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.RDEFinalizer)
	return phases.Done, nil
}

// orLeft adds to a problem how to leave the entity.
func orLeft(out phases.Result) phases.Result {
	if out.IsProblem() && !strings.HasSuffix(out.Message, unlessLeft) {
		out.Message = strings.TrimSuffix(out.Message, orNone) + unlessLeft
	}
	return out
}

// isOwn reports whether an entity that the cluster has may be deleted with it.
func (s *scope) isOwn(ctx context.Context) (bool, error) {
	c := s.vcdCluster
	if c.Spec.RDE.ID != "" && c.Spec.RDE.ID != c.Spec.InfraID {
		entityRetained(s.reconciler.Recorder, c, c.Spec.RDE.ID, "it was set in spec.rde.id")
		return false, nil
	}
	if c.Spec.InfraID == "" || strings.HasPrefix(c.Spec.InfraID, noEntity) {
		return false, nil // None was made.
	}
	other, err := s.rival(ctx)
	if other != nil {
		entityRetained(s.reconciler.Recorder, c, notes.EntityID(c), "another VCDCluster uses it")
	}
	return other == nil, err
}

// findOwn finds all entities that were made for the cluster: one that was made just before the process ended was not
// recorded, and one whose request got no answer was made again.
func (s *scope) findOwn(ctx context.Context) (phases.Result, error) {
	id := notes.EntityID(s.vcdCluster)
	if id != "" {
		s.own = []string{id}
	}
	found, err := s.session.Entities().Find(ctx, kind, s.vcdCluster.Name, s.vcdCluster.Spec.InfraID)
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden) && id == "":
		return phases.Done, nil // None can have been made, or all went with their type.
	case err != nil:
		return unavailable(err, "Searching for the runtime defined entity")
	}
	for _, hit := range found {
		if hit.ID != id {
			s.own = append(s.own, hit.ID)
		}
	}
	return phases.Done, nil
}

// deleteOwn deletes the entities.
func (s *scope) deleteOwn(ctx context.Context) (phases.Result, error) {
	for _, id := range s.own {
		if out, err := s.deleteEntity(ctx, id); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// deleteEntity deletes an entity. VCD refuses one that is gone as it does one that the user may not see.
func (s *scope) deleteEntity(ctx context.Context, id string) (phases.Result, error) {
	c := s.vcdCluster
	entities := s.session.Entities()
	entity, err := entities.Get(ctx, id)
	switch {
	case isHidden(err):
		entityRetained(s.reconciler.Recorder, c, id, "it is not visible to the user of the identity, or was deleted")
		return phases.Done, nil
	case err != nil:
		return session.Unread(err, "Reading the runtime defined entity")
	}
	if why := notDeletable(entity, c.Spec.InfraID); why != "" {
		entityRetained(s.reconciler.Recorder, c, id, why)
		return phases.Done, nil
	}
	if entity.State == vcd.EntityPreCreated { // Only what was resolved can be deleted.
		if _, err := entities.Resolve(ctx, id); err != nil {
			return session.Refusal(err, "Resolving the runtime defined entity")
		}
	}
	switch err := entities.Delete(ctx, id); {
	case isHidden(err):
		entityRetained(s.reconciler.Recorder, c, id, "the user of the identity may not delete it, or it was deleted")
	case err != nil:
		return session.Refusal(err, "Deleting the runtime defined entity")
	default:
		entityDeleted(s.reconciler.Recorder, c, id)
	}
	return phases.Done, nil
}

// isHidden reports whether VCD does not show an entity, or does not let the user change it.
func isHidden(err error) bool {
	return errors.Is(err, vcd.ErrForbidden) || errors.Is(err, vcd.ErrNotFound)
}

// notDeletable returns why an entity stays when its cluster is deleted; empty if it does not.
func notDeletable(entity vcd.Entity, cluster string) string {
	if owner := rde.Owner(entity.Content); owner != "" && owner != cluster {
		return "it belongs to another cluster"
	}
	if rde.ManagedByCSE(entity.Content) {
		return "Container Service Extension manages it"
	}
	return ""
}
