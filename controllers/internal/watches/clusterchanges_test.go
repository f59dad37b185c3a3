// SPDX-License-Identifier: Apache-2.0

package watches_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
)

func TestClusterChanges(t *testing.T) {
	tests := []struct {
		name   string
		change func(*clusterv1.Cluster)
		passes bool
	}{
		{
			name:   "nothing",
			change: func(*clusterv1.Cluster) {},
		},
		{
			name: "the number of workers",
			change: func(c *clusterv1.Cluster) {
				c.Status.Workers = &clusterv1.WorkersStatus{ReadyReplicas: ptr.To[int32](4)}
			},
		},
		{
			name: "the number of ready control planes",
			change: func(c *clusterv1.Cluster) {
				c.Status.ControlPlane.ReadyReplicas = ptr.To[int32](2)
			},
		},
		{
			name: "a condition that no reconciler reads",
			change: func(c *clusterv1.Cluster) {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1.AvailableCondition})
			},
		},
		{
			name:   "the spec",
			change: func(c *clusterv1.Cluster) { c.Generation++ },
			passes: true,
		},
		{
			name:   "a deletion",
			change: func(c *clusterv1.Cluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) },
			passes: true,
		},
		{
			name:   "a label",
			change: func(c *clusterv1.Cluster) { c.Labels = map[string]string{"ccm": "yes"} },
			passes: true,
		},
		{
			name:   "the paused annotation",
			change: func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
			passes: true,
		},
		{
			name: "provisioned infrastructure",
			change: func(c *clusterv1.Cluster) {
				c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
			},
			passes: true,
		},
		{
			name: "an initialized control plane, by its condition",
			change: func(c *clusterv1.Cluster) {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
					Type:   clusterv1.ClusterControlPlaneInitializedCondition,
					Status: metav1.ConditionTrue,
				})
			},
			passes: true,
		},
		{
			name: "the desired number of control planes",
			change: func(c *clusterv1.Cluster) {
				c.Status.ControlPlane.DesiredReplicas = ptr.To[int32](3)
			},
			passes: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "demo", ResourceVersion: "1"},
				Status: clusterv1.ClusterStatus{
					ControlPlane: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: ptr.To[int32](1)},
				},
			}
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tt.change(after)

			passes := watches.ClusterChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})

			g.Expect(passes).To(Equal(tt.passes))
		})
	}
}
