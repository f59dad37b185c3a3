// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// lastRetry is the maximum delay after a failure. The delay doubles with each failure in a row.
const lastRetry = 10 * time.Minute

// A failure is a failed step. The same step is not retried before until. If the machines or their policy change, the
// step differs and is tried immediately.
type failure struct {
	step  string // the printed step
	out   phases.Result
	times int // number of failures in a row
	until time.Time
}

// key identifies a step by its rule.
func (s *scope) key(vdc vcd.Ref, step affinity.Step) string {
	return string(s.vcdCluster.UID) + "/affinity/" + vdc.ID + "/" + step.Rule.Name + step.Rule.ID
}

// settle waits for the tasks of earlier passes.
func (s *scope) settle(context.Context) (phases.Result, error) {
	for key, task := range s.state.running {
		t, ok := task.session.Task(key)
		if ok && t.State == vcd.TaskRunning {
			return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "%s: waiting for VCD", task.step.Text()),
				nil
		}
		delete(s.state.running, key)
		task.session.Forget(key)
		task.session.ForgetAffinityRules()
		if ok && t.State == vcd.TaskFailed {
			s.fail(key, task.step, problems.OfTask(t, task.step.Text()), 0)
		}
	}
	return phases.Done, nil
}

// fail delays the next attempt of a step, with exponential backoff and at least for the duration least.
func (s *scope) fail(key string, step affinity.Step, out phases.Result, least time.Duration) {
	times := s.state.failed[key].times
	delay := max(least, min(intervals.FirstRetry<<min(times, 10), lastRetry))
	s.state.failed[key] = failure{fmt.Sprint(step), out, times + 1, s.reconciler.now().Add(delay)}
}

// hold removes steps that back off from the plans. It forgets the failures of rules that the plans no longer contain.
func (s *scope) hold(context.Context) (phases.Result, error) {
	known := s.state.failed
	s.state.failed = map[string]failure{}
	for i := range s.plans {
		p := &s.plans[i]
		p.Steps = slices.DeleteFunc(p.Steps, func(step affinity.Step) bool {
			key := s.key(p.vdc.Ref, step)
			f, ok := known[key]
			if !ok {
				return false
			}
			s.state.failed[key] = f
			return f.step == fmt.Sprint(step) && s.isHeld(f)
		})
	}
	return phases.Done, nil
}

// isHeld reports whether a failure still delays its step. It stores the result of the first such failure for the
// condition.
func (s *scope) isHeld(f failure) bool {
	left := f.until.Sub(s.reconciler.now())
	if left <= 0 {
		return false
	}
	f.out.After = left
	s.held = cmp.Or(s.held, f.out)
	return true
}

// gather waits briefly after a difference was first observed, because machines are often created or deleted together.
func (s *scope) gather(context.Context) (phases.Result, error) {
	if !slices.ContainsFunc(s.plans, func(p vdcPlan) bool { return len(p.Steps) > 0 }) {
		s.state.changedSince = time.Time{}
		return phases.Done, nil
	}
	if s.state.changedSince.IsZero() {
		s.state.changedSince = s.reconciler.now()
	}
	gather := s.reconciler.Gather
	if gather == 0 {
		gather = defaultGather
	}
	if left := s.state.changedSince.Add(gather).Sub(s.reconciler.now()); left > 0 {
		return phases.Wait(left, infrav1.EntityBusyReason, "Waiting for machines that are created or deleted at the same time"),
			nil
	}
	return phases.Done, nil
}

// apply starts all steps. Each changes a different rule, so the failure of one does not affect the others.
func (s *scope) apply(ctx context.Context) (phases.Result, error) {
	for _, p := range s.plans {
		for _, step := range p.Steps {
			if out, err := s.start(ctx, p, step); err != nil || out != phases.Done {
				return out, err
			}
		}
	}
	s.state.changedSince = time.Time{}
	if len(s.state.running) > 0 {
		return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "Waiting for VCD to change affinity rules"), nil
	}
	return phases.Done, nil
}

// start starts one step. Before the first rule in a VDC is created, it saves the VDC on the VCDCluster, so that the
// rules are found after a restart.
func (s *scope) start(ctx context.Context, p vdcPlan, step affinity.Step) (phases.Result, error) {
	vdc := p.vdc
	recorded := &s.vcdCluster.Spec.RecordedState
	if step.Kind == affinity.Create && !slices.Contains(recorded.AffinityRuleOVDCIDs, vdc.ID) {
		recorded.AffinityRuleOVDCIDs = append(recorded.AffinityRuleOVDCIDs, vdc.ID)
		if err := s.patcher.Save(ctx); err != nil {
			return phases.Done, err
		}
	}
	ctrl.LoggerFrom(ctx).Info(string(step.Kind)+" an affinity rule", "rule", step.Rule.Name, "vdc", vdc.Name,
		"vms", len(step.Rule.VMs))
	key := s.key(vdc.Ref, step)
	task, err := affinity.Send(ctx, p.session, vdc, step)
	if err != nil {
		out, err := affinity.Refused(ctx, p.session, vdc, step, err)
		if err != nil || !out.IsProblem() || out.IsUnknown() {
			return out, err
		}
		s.fail(key, step, out, out.After)
		s.isHeld(s.state.failed[key])
		return phases.Done, nil
	}
	s.state.running[key] = running{step, p.session}
	p.session.Follow(key, task, s.reconciler.wakeUps.ForObject(s.vcdCluster))
	ruleChanged(s.reconciler.Recorder, s.vcdCluster, step)
	return phases.Done, nil
}
