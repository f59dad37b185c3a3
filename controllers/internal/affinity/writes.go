// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Text returns the description of a step for messages.
func (s Step) Text() string {
	kind := "affinity"
	if s.Rule.Apart {
		kind = "anti-affinity"
	}
	return fmt.Sprintf("%s %s rule %s", s.Kind, kind, s.Rule.Name)
}

// Send sends the request of a step in a VDC. It returns the task that VCD started.
func Send(ctx context.Context, s *session.Session, vdc vcd.VDC, step Step) (vcd.Task, error) {
	switch step.Kind {
	case Create:
		return s.CreateAffinityRule(ctx, vdc, step.Rule)
	case Update:
		return s.UpdateAffinityRule(ctx, step.Rule)
	case Delete:
	}
	return s.DeleteAffinityRule(ctx, step.Rule.ID)
}

// noRight returns the result if the user may not view the rules of a VDC, or if the VDC no longer exists.
func noRight(err error, vdc vcd.Ref) phases.Result {
	return phases.Fail(intervals.Remedy, infrav1.ForbiddenReason,
		"Cannot list the affinity rules of VDC %s (%v): grant the user of the identity the right %q, or set spec.antiAffinity to None and leave out spec.affinity. If the VDC was deleted, remove it from spec.recordedState.affinityRuleOVDCIDs of the VCDCluster", vdc.Name, err, vcd.RightAffinity).NoAccess()
}

// Refused maps the rejection of a step to a result. VCD responds in the same way for a rule that was deleted since it
// was listed and for a rule that the user may not change, so Refused lists the rules again.
func Refused(ctx context.Context, s *session.Session, vdc vcd.VDC, step Step, err error) (phases.Result, error) {
	if errors.Is(err, vcd.ErrForbidden) && step.Kind != Create {
		rules, errListing := s.AffinityRules(ctx, vdc)
		if errListing != nil {
			return Unlisted(errListing, vdc.Ref)
		}
		if !slices.ContainsFunc(rules, func(r vcd.AffinityRule) bool { return r.ID == step.Rule.ID }) {
			err = vcd.ErrNotFound
		}
	}
	switch {
	case errors.Is(err, vcd.ErrNotFound) && step.Kind != Create:
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "%s, which is no longer visible in VCD",
			step.Text()), nil
	case errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(intervals.Remedy, infrav1.ForbiddenReason,
			"%s in VDC %s: %v: grant the user of the identity the right %q; it must also own the VMs",
			step.Text(), vdc.Name, err, vcd.RightAffinity), nil
	}
	return problems.OfWrite(err, step.Text())
}

// RemoveAll takes the next step in the deletion of all rules of a cluster. wake is called when a task has finished.
func RemoveAll(ctx context.Context, a Access, c *infrav1.VCDCluster, wake func()) (phases.Result, error) {
	waiting := phases.Done
	problem := phases.Done // in one VDC, which does not affect the others
	for _, id := range c.Spec.RecordedState.AffinityRuleOVDCIDs {
		out, err := removeIn(ctx, a, c, id, wake)
		switch {
		case err != nil:
			return phases.Done, err
		case out.IsProblem():
			problem = out
		case out != phases.Done:
			waiting = out
		}
	}
	return cmp.Or(waiting, problem), nil
}

// removeIn takes the next step in the deletion of all rules of a cluster in a VDC, given by URN.
func removeIn(ctx context.Context, a Access, c *infrav1.VCDCluster, id string, wake func()) (phases.Result, error) {
	s, out, err := a.Open(ctx, c, id)
	if err != nil || out != phases.Done {
		return out, err
	}
	vdc := vcd.VDC{Ref: vcd.Ref{ID: id, Name: id}}
	rules, err := s.AffinityRules(ctx, vdc)
	if err != nil {
		return Unlisted(err, vdc.Ref)
	}
	waiting := phases.Done
	for _, rule := range OfCluster(c.Spec.InfraID, rules) {
		out, err := remove(ctx, s, c, vdc, rule, wake)
		if err != nil || out.IsProblem() {
			return out, err
		}
		waiting = out
	}
	return waiting, nil
}

// OfCluster returns the rules of a cluster.
func OfCluster(infraID string, rules []vcd.AffinityRule) []vcd.AffinityRule {
	isForeign := func(r vcd.AffinityRule) bool { return !strings.HasPrefix(r.Name, Prefix(infraID)) }
	return slices.DeleteFunc(slices.Clone(rules), isForeign)
}

// Unlisted maps the failure to list the rules of a VDC to a result.
func Unlisted(err error, vdc vcd.Ref) (phases.Result, error) {
	if errors.Is(err, vcd.ErrForbidden) || errors.Is(err, vcd.ErrNotFound) {
		return noRight(err, vdc), nil
	}
	return problems.OfRead(err, "Listing affinity rules")
}

// remove starts the deletion of one rule, or waits until it has finished.
func remove(ctx context.Context, s *session.Session, c *infrav1.VCDCluster, vdc vcd.VDC, rule vcd.AffinityRule,
	wake func(),
) (phases.Result, error) {
	step := Step{Delete, rule}
	key := string(c.UID) + "/affinity/" + rule.ID
	running := phases.Wait(intervals.Task, infrav1.TaskRunningReason, "%s: waiting for VCD", step.Text())
	if t, ok := s.Task(key); ok {
		if t.State == vcd.TaskRunning {
			return running, nil
		}
		s.Forget(key)
		s.ForgetAffinityRules()
		if t.State == vcd.TaskFailed {
			return problems.OfTask(t, step.Text()), nil
		}
		return phases.Wait(intervals.Busy, infrav1.TaskRunningReason, "%s: checking", step.Text()), nil
	}
	task, err := s.DeleteAffinityRule(ctx, rule.ID)
	if err != nil {
		return Refused(ctx, s, vdc, step, err)
	}
	s.Follow(key, task, wake)
	return running, nil
}
