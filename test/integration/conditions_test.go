// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// expectedConditions lists the conditions that an object always has, by kind, in addition to Ready and Paused.
var expectedConditions = map[string][]string{
	"VCDCluster": {infrav1.IdentityReadyCondition, infrav1.NetworkReadyCondition, infrav1.EndpointReadyCondition},
	"VCDMachine": {
		infrav1.BootstrapReadyCondition,
		infrav1.PlacementReadyCondition,
		infrav1.VAppReadyCondition,
		infrav1.VMCreatedCondition,
		infrav1.BootstrapInjectedCondition,
		infrav1.PoweredOnCondition,
		infrav1.AddressesReadyCondition,
	},
	"VCDIdentity": {infrav1.SecretReadyCondition},
}

// checkConditions waits until the objects of this provider in the namespace have complete conditions, and kstatus
// interprets them correctly.
func (s *site) checkConditions() {
	s.t.Helper()
	s.g.Eventually(s.conditionProblems, timeout, "250ms").Should(BeEmpty())
}

// conditionProblems lists the problems in the conditions of the objects of this provider.
func (s *site) conditionProblems() []string {
	var problems []string
	for _, list := range []client.ObjectList{
		&infrav1.VCDClusterList{},
		&infrav1.VCDMachineList{},
		&infrav1.VCDIdentityList{},
	} {
		s.g.Expect(shared.client.List(s.t.Context(), list, client.InNamespace(s.namespace))).To(Succeed())
		s.g.Expect(meta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(conditioned)
			s.g.Expect(ok).To(BeTrue())
			gvk, err := shared.client.GroupVersionKindFor(obj)
			if err != nil || len(obj.GetFinalizers()) == 0 { // not reconciled
				return err
			}
			for _, problem := range append(missingConditions(gvk.Kind, obj), kstatusProblems(gvk.Kind, obj)...) {
				problems = append(problems, fmt.Sprintf("%s %s: %s", gvk.Kind, obj.GetName(), problem))
			}
			return nil
		})).To(Succeed())
	}
	return problems
}

// missingConditions lists the missing, incomplete and outdated conditions of an object.
func missingConditions(kind string, obj conditioned) []string {
	var problems []string
	if !meta.IsStatusConditionTrue(obj.GetConditions(), clusterv1.PausedCondition) &&
		obj.GetDeletionTimestamp().IsZero() {
		for _, expected := range slices.Concat(expectedConditions[kind],
			[]string{clusterv1.ReadyCondition, clusterv1.PausedCondition}) {
			if meta.FindStatusCondition(obj.GetConditions(), expected) == nil {
				problems = append(problems, "has no condition "+expected)
			}
		}
	}
	if complete := meta.FindStatusCondition(obj.GetConditions(), infrav1.SecretReadyCondition); kind == "VCDIdentity" &&
		complete != nil && complete.Status != metav1.ConditionTrue {
		problems = append(problems, "is in use, but its Secret is not ready: "+complete.Message)
	}
	for _, c := range obj.GetConditions() {
		explained := c.Message != "" || c.Status == metav1.ConditionTrue || c.Type == clusterv1.PausedCondition
		if c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration > obj.GetGeneration() || !explained {
			problems = append(problems, fmt.Sprintf("condition %s=%s is incomplete: %+v", c.Type, c.Status, c))
		}
		if c.Type == clusterv1.ReadyCondition && c.ObservedGeneration != obj.GetGeneration() &&
			obj.GetDeletionTimestamp().IsZero() {
			problems = append(problems,
				fmt.Sprintf("Ready observes generation %d, the object has generation %d", c.ObservedGeneration, obj.GetGeneration()))
		}
	}
	return problems
}

// kstatusProblems compares the status that kstatus computes with the Ready condition of an object.
func kstatusProblems(kind string, obj conditioned) []string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return []string{err.Error()}
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return []string{"kstatus: " + err.Error()}
	}
	want := status.InProgressStatus
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		want = status.TerminatingStatus
	case meta.IsStatusConditionTrue(obj.GetConditions(), clusterv1.ReadyCondition):
		want = status.CurrentStatus
	}
	if result.Status != want {
		return []string{fmt.Sprintf("kstatus interprets this %s as %s, not %s: %s", kind, result.Status, want,
			result.Message)}
	}
	return nil
}
