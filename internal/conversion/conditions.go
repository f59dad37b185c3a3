// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// noReason is the reason for CAPVCD conditions without one, because v1beta4 requires a reason.
const noReason = "NoReasonReported"

// warning is the severity of v1beta4 conditions that are False.
const warning = "Warning"

// conditionNames maps the names of CAPVCD's conditions to their v1beta4 equivalents.
var conditionNames = []struct{ old, hub string }{
	{clusterv1.ReadyCondition, clusterv1.ReadyCondition},
	{"LoadBalancerAvailable", infrav1.EndpointReadyCondition},
	{"ContainerProvisioned", infrav1.VMCreatedCondition},
}

// conditionsToHub converts the conditions of CAPVCD and drops those without a v1beta4 equivalent.
func conditionsToHub(olds []v1beta3.Condition) []metav1.Condition {
	var hubs []metav1.Condition
	for _, name := range conditionNames {
		i := slices.IndexFunc(olds, func(c v1beta3.Condition) bool { return c.Type == name.old })
		if i < 0 {
			continue
		}
		hubs = append(hubs, metav1.Condition{
			Type:               name.hub,
			Status:             metav1.ConditionStatus(olds[i].Status),
			LastTransitionTime: olds[i].LastTransitionTime,
			Reason:             cmp.Or(olds[i].Reason, noReason),
			Message:            olds[i].Message,
		})
	}
	return hubs
}

// conditionsFromHub converts all conditions. Those without a CAPVCD equivalent keep their v1beta4 names.
func conditionsFromHub(hubs []metav1.Condition) []v1beta3.Condition {
	var olds []v1beta3.Condition
	for _, c := range hubs {
		old := v1beta3.Condition{
			Type:               c.Type,
			Status:             string(c.Status),
			LastTransitionTime: c.LastTransitionTime,
			Reason:             c.Reason,
			Message:            c.Message,
		}
		for _, name := range conditionNames {
			if name.hub == c.Type {
				old.Type = name.old
			}
		}
		if c.Reason == noReason {
			old.Reason = ""
		}
		if c.Status == metav1.ConditionFalse {
			old.Severity = warning
		}
		olds = append(olds, old)
	}
	return olds
}
