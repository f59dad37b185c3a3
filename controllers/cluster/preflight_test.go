// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A VDC in which nothing can be created is reported on the VCDCluster before a machine exists. The condition recovers
// once the VDC is repaired.
func TestPreflightProblemsAreReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		wrong  func(vdc *vcdsim.VDC)
		mend   func(vdc *vcdsim.VDC)
		reason string
		remedy string
	}{
		{
			name:   "a disabled VDC",
			wrong:  func(v *vcdsim.VDC) { v.Disabled = true },
			mend:   func(v *vcdsim.VDC) { v.Disabled = false },
			reason: infrav1.VDCDisabledReason,
			remedy: "ask the provider to enable it",
		},
		{
			name: "a VDC without an enabled storage profile",
			wrong: func(v *vcdsim.VDC) {
				for i := range v.StorageProfiles {
					v.StorageProfiles[i].Disabled = true
				}
			},
			mend:   func(v *vcdsim.VDC) { v.StorageProfiles[0].Disabled = false },
			reason: infrav1.StorageProfileNotFoundReason,
			remedy: "add or enable one",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t)
			w.Sim.Edit(func(e *vcdsim.Editor) { tt.wrong(e.VDC("acme-vdc")) })

			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			c := w.VCDCluster()
			w.Expect(conditions.Get(c, infrav1.PreflightPassedCondition)).To(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tt.reason),
				HaveField("Message", ContainSubstring(tt.remedy))))
			events := w.EventTexts()
			w.Expect(events).To(ContainElement(HavePrefix("Warning " + tt.reason)))
			result, err := w.ReconcileCluster()
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", intervals.Remedy)))
			w.Expect(w.EventTexts()).To(BeEmpty(), "one event per problem")

			w.Sim.Edit(func(e *vcdsim.Editor) { tt.mend(e.VDC("acme-vdc")) })
			w.EventuallyCluster(infrav1.PreflightPassedCondition, infrav1.ReadyReason)
		})
	}
}

func TestPreflightChecksCauseNoRequests(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(infrav1.PreflightPassedCondition, infrav1.ReadyReason)
	before := len(w.Sim.Requests())

	for range 10 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(w.Sim.Requests()).To(HaveLen(before))
}
