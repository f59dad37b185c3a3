// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestARenamedVAppIsDeletedWithItsCluster(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready("a")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Name = "renamed" })
	w.Later(2 * machine.InventoryEvery)
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.DeleteMachine("a")
	w.DeleteCluster()

	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}
