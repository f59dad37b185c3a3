package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// tasksKept is for how long VCD remembers at least what it did.
const tasksKept = 24 * time.Hour

// lookForMissing finds out what became of a recorded VM that the inventory does not show.
func (s *machineScope) lookForMissing(ctx context.Context) (outcome, error) {
	m, id := s.vcdMachine, s.vmID()
	_, err := s.session.VM(ctx, id)
	switch {
	case err == nil:
		seen(m)
		return unsure(remedyPoll, infrav1.VMUnverifiedReason,
			"VCD shows VM %s and does not list it: look whether its inventory is complete, and at the rights of the identity's user", id), nil
	case !invisible(err):
		return refusal(err, "Reading VM "+id)
	case m.Annotations[infrav1.VMNotFoundSinceAnnotation] == "":
		if out, err := s.proveGone(ctx, id); err != nil || out != done {
			return out, err
		}
		vmGone(s.Recorder, m, id)
	}
	return fail(lookEvery, infrav1.VMNotFoundReason, "VM %s is gone from VCD: delete the Machine to replace it", id), nil
}

// saidGone is the outcome for a machine whose VM is gone by the word of a person.
func saidGone() outcome {
	return stop(infrav1.VMNotFoundReason, "The VM is gone, annotation %s says: delete the Machine to replace it", infrav1.VMGoneAnnotation)
}

// remembered makes sure that VCD, which does not show a VM, remembers that it made it: one that was set back to an earlier state
// knows nothing of what was made since, though it may still run.
func (s *machineScope) remembered(ctx context.Context, id, what string) (outcome, error) {
	since, err := time.Parse(time.RFC3339, s.vcdMachine.Annotations[infrav1.PoweredOnAnnotation])
	if err != nil || s.now().Sub(since) > tasksKept {
		return done, nil //nolint:nilerr // Without the time it is an old one.
	}
	tasks, err := s.history(ctx, id)
	if err != nil {
		return refusal(err, "Looking for the tasks of "+what)
	}
	if len(tasks) > 0 {
		return done, nil
	}
	return unsure(remedyPoll, infrav1.VMUnverifiedReason,
		"Neither %s is seen nor any of the tasks that made it, less than a day ago: was VCD set back to an earlier state? If the VM is gone, annotate the VCDMachine with %s=true",
		what, infrav1.VMGoneAnnotation), nil
}

// showsDeletion says whether VCD's log of tasks shows that the VM, or the vApp it was in, was deleted, by whom ever.
func (s *machineScope) showsDeletion(ctx context.Context, id string) (bool, error) {
	ids := []string{id}
	if vApp := s.vcdMachine.Status.VApp; vApp != nil {
		ids = append(ids, vApp.ID)
	} else if made, ok := s.made(); ok && made.VApp != "" {
		ids = append(ids, made.VApp)
	}
	tasks, err := s.history(ctx, ids...)
	return slices.ContainsFunc(tasks, func(t vcd.Task) bool { return t.Deletes() && t.State == vcd.TaskSucceeded }), err
}

// history returns the tasks of objects, none if VCD does not show tasks to the user.
func (s *machineScope) history(ctx context.Context, ids ...string) ([]vcd.Task, error) {
	tasks, err := s.session.History(ctx, ids...)
	if errors.Is(err, vcd.ErrInvalid) || errors.Is(err, vcd.ErrForbidden) {
		return nil, nil
	}
	return tasks, err //nolint:wrapcheck // refusal looks into it.
}
