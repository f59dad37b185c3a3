// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// keepRemedy is the last remedy for an entity that cannot be deleted.
const keepRemedy = orNone + " to keep the entity"

// remove deletes the entity of a cluster that is gone, if the cluster owns it. It then removes the finalizer from the
// VCDCluster.
func remove(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	own, err := s.isOwn(ctx)
	if err != nil {
		return phases.Done, err
	}
	if own {
		s.state.beginRemoval()
		out, err := s.rateLimited(ctx, s.open, s.findOwn, s.deleteOwn)
		switch {
		case err != nil:
			return out, err
		case out != phases.Done:
			return orKeep(out), nil
		case s.again > 0:
			return phases.Wait(s.again, infrav1.TaskRunningReason, "Waiting to delete the runtime defined entity"), nil
		}
	}
	s.reconciler.states.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.RDEFinalizer)
	return phases.Done, nil
}

// orKeep adds to a problem how to keep the entity.
func orKeep(out phases.Result) phases.Result {
	if out.IsProblem() && !strings.HasSuffix(out.Message, keepRemedy) {
		out.Message = strings.TrimSuffix(out.Message, orNone) + keepRemedy
	}
	return out
}

// isOwn reports whether the entity of the cluster may be deleted with it.
func (s *scope) isOwn(ctx context.Context) (bool, error) {
	c := s.vcdCluster
	if c.Spec.RDE.ID != "" && c.Spec.RDE.ID != c.Spec.InfraID {
		entityRetained(s.reconciler.Recorder, c, c.Spec.RDE.ID, "it was set in spec.rde.id")
		return false, nil
	}
	if c.Spec.InfraID == "" || strings.HasPrefix(c.Spec.InfraID, noEntity) {
		return false, nil // No entity was created.
	}
	other, err := s.rival(ctx)
	if other != nil {
		entityRetained(s.reconciler.Recorder, c, notes.EntityID(c), "another VCDCluster uses it")
	}
	return other == nil, err
}

// findOwn finds all entities that were created for the cluster. One that was created just before a restart was not
// recorded, and one whose request got no response was created again.
func (s *scope) findOwn(ctx context.Context) (phases.Result, error) {
	id := notes.EntityID(s.vcdCluster)
	if id != "" {
		s.own = []string{id}
	}
	found, err := s.session.Entities().Find(ctx, kind, s.vcdCluster.Name, s.vcdCluster.Spec.InfraID)
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden) && id == "":
		return phases.Done, nil // No entity was created, or all were deleted with their type.
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

// deleteOwn deletes the entities that were created for the cluster.
func (s *scope) deleteOwn(ctx context.Context) (phases.Result, error) {
	for _, id := range s.own {
		if out, err := s.deleteEntity(ctx, id); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// deleteEntity deletes an entity. VCD returns the same error if the entity is gone as if the user has no access to it.
func (s *scope) deleteEntity(ctx context.Context, id string) (phases.Result, error) {
	c := s.vcdCluster
	entities := s.session.Entities()
	entity, err := entities.Get(ctx, id)
	switch {
	case isHidden(err):
		entityRetained(s.reconciler.Recorder, c, id, "it is not visible to the user of the identity, or was deleted")
		return phases.Done, nil
	case err != nil:
		return problems.OfRead(err, "Reading the runtime defined entity")
	}
	if why := notDeletable(entity, c.Spec.InfraID); why != "" {
		entityRetained(s.reconciler.Recorder, c, id, why)
		return phases.Done, nil
	}
	if entity.State == vcd.EntityPreCreated { // Only resolved entities can be deleted.
		if _, err := entities.Resolve(ctx, id); err != nil {
			return problems.OfWrite(err, "Resolving the runtime defined entity")
		}
	}
	switch err := entities.Delete(ctx, id); {
	case isHidden(err):
		entityRetained(s.reconciler.Recorder, c, id, "the user of the identity may not delete it, or it was deleted")
	case err != nil:
		return problems.OfWrite(err, "Deleting the runtime defined entity")
	default:
		entityDeleted(s.reconciler.Recorder, c, id)
	}
	return phases.Done, nil
}

// isHidden reports whether VCD does not show an entity, or does not allow the user to change it.
func isHidden(err error) bool {
	return errors.Is(err, vcd.ErrForbidden) || errors.Is(err, vcd.ErrNotFound)
}

// notDeletable returns why an entity must be retained when its cluster is deleted; empty if it may be deleted.
func notDeletable(entity vcd.Entity, cluster string) string {
	if owner := rde.Owner(entity.Content); owner != "" && owner != cluster {
		return "it belongs to another cluster"
	}
	if rde.ManagedByCSE(entity.Content) {
		return "Container Service Extension manages it"
	}
	return ""
}
