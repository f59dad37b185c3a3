// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestWritingADeletedObjectIsNotAnErrorDuringDeletion(t *testing.T) {
	for _, tt := range []struct {
		name    string
		deleted bool
		want    gomegatypes.GomegaMatcher
	}{
		{"a deleted object may not exist any longer", true, Succeed()},
		{"an object that was not deleted must exist", false, Not(Succeed())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
			m := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{
				Name:       "m",
				Namespace:  "default",
				Finalizers: []string{infrav1.MachineFinalizer},
			}}
			if tt.deleted {
				now := metav1.Now()
				m.DeletionTimestamp = &now
			}
			patcher := &Patcher{client: fake.NewClientBuilder().WithScheme(scheme).Build(), obj: m}
			patcher.begin()
			m.Finalizers = nil
			set(m, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")

			err := patcher.finish(t.Context(), nil)

			g.Expect(err).To(tt.want)
		})
	}
}
