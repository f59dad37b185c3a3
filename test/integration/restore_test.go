// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestVCDRestoredFromADumpOfAnHourAgo checks the recovery from a restore of VCD: objects created after the dump
// disappear, and objects deleted after the dump reappear, all at once.
func TestVCDRestoredFromADumpOfAnHourAgo(t *testing.T) {
	t.Parallel()
	s, _, old := newFrontedSite(t)
	var dump bytes.Buffer
	s.g.Expect(s.Dump(&dump)).To(Succeed())
	s.deleteMachine(old[0].Name)
	var young []*infrav1.VCDMachine
	for i := range 3 {
		young = append(young, s.machine("hostage", fmt.Sprintf("young-%d", i)))
	}
	for _, m := range young {
		s.ready(m)
	}

	s.g.Expect(s.Restore(&dump)).To(Succeed())

	s.g.Expect(s.State().VMs).To(HaveLen(3))
	s.expectNoneGone(append(young, old[1:]...)...)
	for _, m := range young {
		s.waitUntilUnknown(m)
	}
	for _, m := range old[1:] {
		s.ready(m)
	}
	// An administrator acknowledges the loss.
	for _, m := range young {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, infrav1.VMGoneAnnotation)
		s.g.Expect(shared.client.Patch(t.Context(), m,
			client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	}
	for _, m := range append(young, old[1:]...) {
		s.g.Expect(shared.client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: s.meta(m.Name)})).To(Succeed())
	}
	cluster := &infrav1.VCDCluster{ObjectMeta: s.meta("hostage")}
	s.g.Expect(shared.client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: cluster.ObjectMeta})).To(Succeed())
	// The VM that reappeared is an orphaned resource, and it runs. An administrator must decide.
	s.g.Eventually(func() (string, error) { return s.state(cluster, clusterv1.ReadyCondition) }, longTimeout, "250ms").
		Should(And(HavePrefix("False "+infrav1.VAppNotEmptyReason), ContainSubstring(old[0].Name)))
	s.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM(old[0].Name)) })
	s.trigger(cluster)
	s.deleteCluster("hostage")
	s.empty()
}
