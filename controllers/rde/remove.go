package rde

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// unlessLeft is what to do about an entity that cannot be deleted.
const unlessLeft = ", or set spec.rde.mode to None to leave the entity"

// remove deletes the entity of a cluster that is gone, if it is the cluster's own, and lets go of the VCDCluster.
func remove(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	own, err := s.isOwn(ctx)
	if err != nil {
		return phases.Done, err
	}
	if own {
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
	s.states.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.RDEFinalizer)
	return phases.Done, nil
}

// orLeft adds to a problem how to leave the entity.
func orLeft(out phases.Outcome) phases.Outcome {
	if out.Problem && !strings.HasSuffix(out.Message, unlessLeft) {
		out.Message += unlessLeft
	}
	return out
}

// isOwn reports whether an entity that the cluster has may be deleted with it.
func (s *scope) isOwn(ctx context.Context) (bool, error) {
	c := s.vcdCluster
	if c.Spec.RDE.ID != "" && c.Spec.RDE.ID != c.Spec.InfraID {
		entityLeft(s.Recorder, c, "it was named in spec.rde.id")
		return false, nil
	}
	if c.Spec.InfraID == "" || strings.HasPrefix(c.Spec.InfraID, noEntity) {
		return false, nil // None was made.
	}
	other, err := s.rival(ctx)
	if other != nil {
		entityLeft(s.Recorder, c, "another VCDCluster has it")
	}
	return other == nil, err
}

// findOwn finds the entity. One that was made just before the process ended was not recorded.
func (s *scope) findOwn(ctx context.Context) (phases.Outcome, error) {
	if s.known() {
		return s.find(ctx)
	}
	found, err := s.session.Entities().Find(ctx, kind, s.vcdCluster.Name, s.vcdCluster.Spec.InfraID)
	switch {
	case isHidden(err): // None can have been made.
		return phases.Done, nil
	case err != nil:
		return session.Unread(err, "Searching the runtime defined entity")
	case len(found) > 0:
		s.id = found[0].ID
	}
	return phases.Done, nil
}

// deleteOwn deletes the entity. One that the user may not see is gone, or none of the user's.
func (s *scope) deleteOwn(ctx context.Context) (phases.Outcome, error) {
	if s.id == "" {
		return phases.Done, nil
	}
	c, entities := s.vcdCluster, s.session.Entities()
	entity, err := entities.Get(ctx, s.id)
	switch {
	case isHidden(err):
		return phases.Done, nil
	case err != nil:
		return session.Unread(err, "Reading the runtime defined entity")
	}
	if why := notDeletable(entity, c.Spec.InfraID); why != "" {
		entityLeft(s.Recorder, c, why)
		return phases.Done, nil
	}
	if entity.State == vcd.EntityPreCreated { // Only what was resolved can be deleted.
		if _, err := entities.Resolve(ctx, s.id); err != nil {
			return session.Refusal(err, "Resolving the runtime defined entity")
		}
	}
	switch err := entities.Delete(ctx, s.id); {
	case isHidden(err):
		entityLeft(s.Recorder, c, "the user of the identity may not delete it, or it is gone")
	case err != nil:
		return session.Refusal(err, "Deleting the runtime defined entity")
	default:
		entityDeleted(s.Recorder, c, s.id)
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
