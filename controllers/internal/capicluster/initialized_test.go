// SPDX-License-Identifier: Apache-2.0

package capicluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
)

func TestInitialized(t *testing.T) {
	condition := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{
			Type:   clusterv1.ClusterControlPlaneInitializedCondition,
			Status: status,
		}}
	}
	tests := []struct {
		name   string
		status clusterv1.ClusterStatus
		want   bool
	}{
		{
			name: "a new cluster",
		},
		{
			name:   "a control plane under creation",
			status: clusterv1.ClusterStatus{Conditions: condition(metav1.ConditionFalse)},
		},
		{
			name: "a control plane object",
			status: clusterv1.ClusterStatus{
				Initialization: clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: ptr.To(true)},
			},
			want: true,
		},
		{
			name:   "Machines without an owner",
			status: clusterv1.ClusterStatus{Conditions: condition(metav1.ConditionTrue)},
			want:   true,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(capicluster.Initialized(&clusterv1.Cluster{Status: tc.status})).To(Equal(tc.want))
		})
	}
}
