// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// Defaults for a VCDRemediation that was stored without a strategy.
const (
	defaultRetryLimit     = 1
	defaultTimeoutSeconds = 300
)

// reconcileResets requests resets of the VM, one after the other, until the Machine is healthy or the strategy allows
// no more resets.
func reconcileResets(ctx context.Context, s *scope) (phases.Result, error) {
	reset := s.reset()
	s.remediation.Status.Resets = ptr.To(sent(reset))
	if conditions.IsTrue(s.machine, clusterv1.MachineHealthCheckSucceededCondition) {
		return phases.Wait(0, infrav1.MachineHealthyReason, "Machine %s is healthy", s.machine.Name), nil
	}
	if why := useless(s.machine, s.vcdMachine); why != "" {
		return phases.Note(infrav1.ResetNotApplicableReason, "A reset cannot help: %s", why), nil
	}
	switch {
	case reset.Number == 0:
		return s.request(ctx, 1)
	case reset.SentAt == nil:
		return s.awaitReset(reset)
	}
	return s.awaitHealth(ctx, reset)
}

// reset returns the last reset that this VCDRemediation requested; zero if it requested none.
func (s *scope) reset() infrav1.RequestedReset {
	recorded := s.vcdMachine.Spec.RecordedState.Reset
	if recorded.Remediation != string(s.remediation.UID) {
		return infrav1.RequestedReset{}
	}
	return recorded
}

// sent returns the number of resets that were sent to VCD.
func sent(last infrav1.RequestedReset) int32 {
	if last.Number > 0 && last.SentAt == nil {
		return last.Number - 1
	}
	return last.Number
}

// useless returns why no reset can help; empty if one may help.
func useless(machine *clusterv1.Machine, vcdMachine *infrav1.VCDMachine) string {
	switch {
	case vcdMachine.Spec.RecordedState.VMNotFoundSince != nil, vcdMachine.Annotations[infrav1.VMGoneAnnotation] == "true":
		return "the VM was deleted"
	case !machine.Status.NodeRef.IsDefined():
		return "the guest never became a Node, and a reset does not repeat its bootstrap"
	}
	return ""
}

// request records the request for a reset in the VCDMachine.
func (s *scope) request(ctx context.Context, number int32) (phases.Result, error) {
	changed := s.vcdMachine.DeepCopy()
	changed.Spec.RecordedState.Reset = infrav1.RequestedReset{
		Remediation: string(s.remediation.UID),
		Number:      number,
		RequestedAt: ptr.To(metav1.NewTime(s.reconciler.now().UTC().Truncate(time.Second))),
	}
	// With the optimistic lock, a pass that read an old VCDMachine cannot request another reset.
	change := client.MergeFromWithOptions(s.vcdMachine, client.MergeFromWithOptimisticLock{})
	if err := s.reconciler.Client.Patch(ctx, changed, change); err != nil {
		return phases.Done, fmt.Errorf("requesting a reset in VCDMachine %s: %w", changed.Name, err)
	}
	return s.resetting(number), nil
}

// resetting returns the result for a reset that was not sent yet. The reconciler of the VCDMachine sends it, and its
// change of the VCDMachine triggers the next pass.
func (s *scope) resetting(number int32) phases.Result {
	return phases.Wait(s.timeout(), infrav1.ResettingReason, "Waiting for reset %d of %d: check %s of VCDMachine %s",
		number, s.retryLimit(), infrav1.VMResetCondition, s.vcdMachine.Name)
}

// awaitReset waits until the VM is reset. If VCD rejects the reset for longer than a Machine may take to become
// healthy, the Machine is replaced. While VCD does not respond, nothing is known, and the VM could not be deleted
// either.
func (s *scope) awaitReset(reset infrav1.RequestedReset) (phases.Result, error) {
	left := s.left(reset.RequestedAt)
	seen := conditions.Get(s.vcdMachine, infrav1.VMResetCondition)
	if left > 0 || seen == nil || seen.Status != metav1.ConditionFalse {
		out := s.resetting(reset.Number)
		out.After = max(left, 0)
		return out, nil
	}
	return phases.Note(infrav1.ResetRejectedReason, "VCD did not reset the VM within %s: %s", s.timeout(), seen.Message), nil
}

// awaitHealth waits until the Machine is healthy, and requests the next reset if the timeout expires.
func (s *scope) awaitHealth(ctx context.Context, reset infrav1.RequestedReset) (phases.Result, error) {
	if left := s.left(reset.SentAt); left > 0 {
		return phases.Wait(left, infrav1.WaitingForHealthyMachineReason,
			"Sent reset %d of %d; waiting up to %s for Machine %s to become healthy", reset.Number, s.retryLimit(),
			s.timeout(), s.machine.Name), nil
	}
	if reset.Number < s.retryLimit() {
		return s.request(ctx, reset.Number+1)
	}
	return phases.Note(infrav1.ResetsExhaustedReason, "Machine %s did not become healthy within %s of the last of %d resets",
		s.machine.Name, s.timeout(), reset.Number), nil
}

// left returns the rest of the timeout that began at a time.
func (s *scope) left(since *metav1.Time) time.Duration {
	return s.timeout() - s.reconciler.now().Sub(since.Time)
}

func (s *scope) timeout() time.Duration {
	return time.Duration(cmp.Or(s.remediation.Spec.Strategy.TimeoutSeconds, defaultTimeoutSeconds)) * time.Second
}

func (s *scope) retryLimit() int32 {
	return cmp.Or(s.remediation.Spec.Strategy.RetryLimit, defaultRetryLimit)
}
