// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileReplacement requests the replacement of the Machine from its owner, such as a MachineSet or
// KubeadmControlPlane. According to Cluster API's contract for external remediation, it does so with the condition
// OwnerRemediated.
func reconcileReplacement(ctx context.Context, s *scope) (phases.Result, error) {
	if metav1.GetControllerOf(s.machine) == nil {
		return phases.Stop(infrav1.NoOwnerReason, "Machine %s has no owner that can replace it: delete it, and create another one",
			s.machine.Name), nil
	}
	if conditions.IsFalse(s.machine, clusterv1.MachineOwnerRemediatedCondition) {
		return phases.Done, nil
	}
	helper, err := patch.NewHelper(s.machine, s.reconciler.Client)
	if err != nil {
		return phases.Done, fmt.Errorf("preparing a patch of Machine %s: %w", s.machine.Name, err)
	}
	conditions.Set(s.machine, metav1.Condition{
		Type:    clusterv1.MachineOwnerRemediatedCondition,
		Status:  metav1.ConditionFalse,
		Reason:  clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		Message: "Waiting for remediation: " + conditions.GetMessage(s.remediation, infrav1.ResetsCompletedCondition),
	})
	err = helper.Patch(ctx, s.machine, patch.WithOwnedConditions{Conditions: []string{clusterv1.MachineOwnerRemediatedCondition}})
	if err != nil {
		return phases.Done, fmt.Errorf("requesting the replacement of Machine %s: %w", s.machine.Name, err)
	}
	replacementRequested(s.reconciler.Recorder, s.remediation, s.machine.Name)
	return phases.Done, nil
}

// release removes the VCDRemediation's reset from the VCDMachine.
func release(ctx context.Context, s *scope) (phases.Result, error) {
	if s.vcdMachine != nil && s.reset().Number > 0 {
		changed := s.vcdMachine.DeepCopy()
		changed.Spec.RecordedState.Reset = infrav1.RequestedReset{}
		change := client.MergeFromWithOptions(s.vcdMachine, client.MergeFromWithOptimisticLock{})
		if err := s.reconciler.Client.Patch(ctx, changed, change); client.IgnoreNotFound(err) != nil {
			return phases.Done, fmt.Errorf("removing the reset from VCDMachine %s: %w", changed.Name, err)
		}
	}
	controllerutil.RemoveFinalizer(s.remediation, infrav1.RemediationFinalizer)
	return phases.Done, nil
}
