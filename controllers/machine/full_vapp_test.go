// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// fill adds VMs of the cluster to its vApp until the vApp has n VMs.
func fill(w *controllertest.Env, vApp string, n int) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		ours := e.VApp(vApp)
		seed := e.CopyVApp(ours, "seed")
		for i := range n - 1 {
			name := fmt.Sprintf("full-%d", i)
			e.CopyVApp(seed, name)
			vm := e.VM(name + "-seed-first")
			vm.Description = e.VM("first").Description
			e.MoveVM(vm, ours)
			e.DeleteVApp(e.VApp(name))
		}
		e.DeleteVApp(seed)
	})
}

// vAppOf returns the name of the vApp that contains a VM.
func vAppOf(w *controllertest.Env, name string) string {
	for _, vm := range w.Sim.State().VMs {
		if vm.Name == name {
			return vm.VAppName
		}
	}
	return ""
}

func TestLayoutContinuesInASecondVAppWhenTheFirstIsFull(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("first", "a", "b", "c")...)
	w.Ready("first")
	fill(w, controllertest.ClusterName, 127)
	w.Machine.Gather = 2 * time.Second

	for _, name := range []string{"a", "b", "c"} {
		w.EventuallyMachine(name, infrav1.PlacementReadyCondition, infrav1.ReadyReason)
	}
	w.Ready("a", "b", "c")

	in := map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		in[vAppOf(w, name)]++
	}
	w.Expect(in).To(Equal(map[string]int{controllertest.ClusterName: 1, controllertest.ClusterName + "-2": 2}))
	for _, r := range w.Sim.Requests() {
		w.Expect(r.Status).To(BeNumerically("<", 400), "%s", r.Operation)
	}
	w.Restart(t, w.Machine.Recorder) // The vApp of its VM is recorded.
	w.ExpectSettled("c")
}

func TestAdditionalVAppsAreDeletedWithTheirCluster(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("first", "a")...)
	w.Ready("first")
	fill(w, controllertest.ClusterName, 128)
	w.ComposeForeign(controllertest.ClusterName + "-2")
	w.Ready("a")
	w.Expect(vAppOf(w, "a")).To(Equal(controllertest.ClusterName+"-3"), "the second belongs to another owner")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i := range 127 {
			e.DeleteVM(e.VM(fmt.Sprintf("full-%d-seed-first", i)))
		}
	})

	w.DeleteMachine("a")
	w.DeleteMachine("first")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", controllertest.ClusterName+"-2")))
}
