// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAReconcilerStoresTheResultsOfItsPhases(t *testing.T) {
	const own = "Own"
	failed := errors.New("no")
	for name, tt := range map[string]struct {
		out   Result
		err   error
		ready bool
		want  map[string]metav1.ConditionStatus
	}{
		"a complete phase": {
			ready: true,
			want: map[string]metav1.ConditionStatus{
				own:                      metav1.ConditionTrue,
				clusterv1.ReadyCondition: metav1.ConditionTrue,
			},
		},
		"a phase that waits, without Ready": {
			out:  Wait(time.Second, "R", "m"),
			want: map[string]metav1.ConditionStatus{own: metav1.ConditionFalse},
		},
		"an error": {
			err:   failed,
			ready: true,
			want: map[string]metav1.ConditionStatus{
				own:                      metav1.ConditionUnknown,
				clusterv1.ReadyCondition: metav1.ConditionUnknown,
			},
		},
		"no longer requested, and deleted": {
			out:  Obsolete,
			want: map[string]metav1.ConditionStatus{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
			m := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).Build()
			finished := false

			_, err := Reconciler[*infrav1.VCDMachine, int]{
				Client:   c,
				Recorder: events.NewFakeRecorder(9),
				Open: func(context.Context, *infrav1.VCDMachine, *Patcher) (Entry[int], error) {
					return Entry[int]{Scope: new(int)}, nil
				},
				Phases: []Phase[*int]{{
					Condition: own,
					Run:       func(context.Context, *int) (Result, error) { return tt.out, tt.err },
				}},
				Ready:       tt.ready,
				BeforeStore: func(context.Context, *int, *Pass) { finished = true },
			}.Reconcile(t.Context(), m)

			g.Expect(errors.Is(err, failed)).To(Equal(tt.err != nil))
			g.Expect(finished).To(BeTrue())
			stored := &infrav1.VCDMachine{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), stored)).To(Succeed())
			is := map[string]metav1.ConditionStatus{}
			for _, condition := range []string{own, clusterv1.ReadyCondition} {
				if found := conditions.Get(stored, condition); found != nil {
					is[condition] = found.Status
				}
			}
			g.Expect(is).To(Equal(tt.want))
		})
	}
}
