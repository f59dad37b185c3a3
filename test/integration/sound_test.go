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

// promised are the conditions that an object always has, by kind, in addition to Ready and Paused.
var promised = map[string][]string{
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

// sound checks that the objects of this provider in the namespace have complete conditions, and that generic tools
// interpret them correctly.
func (s *site) sound() {
	s.t.Helper()
	s.g.Eventually(s.unsound, patience, "250ms").Should(BeEmpty())
}

// unsound lists the problems of the objects of this provider.
func (s *site) unsound() []string {
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
			if err != nil || len(obj.GetFinalizers()) == 0 { // not reconciled yet, or never
				return err
			}
			for _, problem := range append(lacks(gvk.Kind, obj), misread(gvk.Kind, obj)...) {
				problems = append(problems, fmt.Sprintf("%s %s: %s", gvk.Kind, obj.GetName(), problem))
			}
			return nil
		})).To(Succeed())
	}
	return problems
}

// lacks lists the conditions that an object lacks.
func lacks(kind string, obj conditioned) []string {
	var problems []string
	if !meta.IsStatusConditionTrue(obj.GetConditions(), clusterv1.PausedCondition) &&
		obj.GetDeletionTimestamp().IsZero() {
		for _, promise := range slices.Concat(promised[kind],
			[]string{clusterv1.ReadyCondition, clusterv1.PausedCondition}) {
			if meta.FindStatusCondition(obj.GetConditions(), promise) == nil {
				problems = append(problems, "has no condition "+promise)
			}
		}
	}
	if complete := meta.FindStatusCondition(obj.GetConditions(), infrav1.SecretReadyCondition); kind == "VCDIdentity" &&
		complete != nil && complete.Status != metav1.ConditionTrue {
		problems = append(problems, "others use it, and it is incomplete: "+complete.Message)
	}
	for _, c := range obj.GetConditions() {
		saysWhy := c.Message != "" || c.Status == metav1.ConditionTrue || c.Type == clusterv1.PausedCondition
		if c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration > obj.GetGeneration() || !saysWhy {
			problems = append(problems, fmt.Sprintf("condition %s=%s is incomplete: %+v", c.Type, c.Status, c))
		}
		if c.Type == clusterv1.ReadyCondition && c.ObservedGeneration != obj.GetGeneration() &&
			obj.GetDeletionTimestamp().IsZero() {
			problems = append(problems,
				fmt.Sprintf("Ready is of generation %d, the object of %d", c.ObservedGeneration, obj.GetGeneration()))
		}
	}
	return problems
}

// misread returns how kstatus differs from the Ready condition of an object.
func misread(kind string, obj conditioned) []string {
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
		return []string{fmt.Sprintf("kstatus takes this %s for %s, not %s: %s", kind, result.Status, want,
			result.Message)}
	}
	return nil
}
