// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
)

// initialize marks the control plane as initialized, as Cluster API does.
func initialize(w *controllertest.Env) {
	cluster := &clusterv1.Cluster{}
	w.Expect(w.Client.Get(w.Ctx, clientKey(controllertest.ClusterName), cluster)).To(Succeed())
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(w.Client.Update(w.Ctx, cluster)).To(Succeed())
}

// legacyDriver runs on the nodes of a workload cluster.
func legacyDriver() *appsv1.DaemonSet {
	driver := &appsv1.DaemonSet{ObjectMeta: controllertest.Meta("csi-vcd-nodeplugin")}
	driver.Spec.Template.Spec.Containers = []corev1.Container{{
		Name:  "csi",
		Image: "registry.example.com/vmware/cloud-director-named-disk-csi-driver:1.6.0",
	}}
	return driver
}

// TestDriversLimitedToOneVAppForbidASecondZone verifies that a machine waits if a driver in the workload cluster would
// not find it. A machine in the zone of the others does not wait.
func TestDriversLimitedToOneVAppForbidASecondZone(t *testing.T) {
	objects := append(controllertest.InZone("a", "cp-a"), controllertest.InZone("a", "md-a")...)
	objects = append(objects, controllertest.InZone("c", "md-c")...)
	w := controllertest.NewInZones(t, append(objects, controllertest.InZone("b", "md-b")...)...)
	w.Ready("cp-a")
	initialize(w)

	w.Ready("md-c") // Zones do not depend on access to the workload cluster.

	driver := legacyDriver()
	w.Workload = controllertest.NewClient(driver)
	w.Later(2 * vapp.DriversRetry)
	w.EventuallyMachine("md-b", infrav1.VAppReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("md-b"), infrav1.VAppReadyCondition)).To(And(
		ContainSubstring("several zones"), ContainSubstring("cloud-director-named-disk-csi-driver:1.6.0"),
		ContainSubstring("Replace or remove them")))
	w.EventuallyCluster(infrav1.VAppLayoutReadyCondition, infrav1.LegacyDriverInstalledReason)
	w.Expect(vmLocations(w.Sim.State())).To(And(HaveLen(2), Not(HaveKey("md-b"))))

	w.Expect(w.Workload.Delete(w.Ctx, driver)).To(Succeed())
	w.Later(4 * vapp.DriversRetry)
	w.Ready("md-a", "md-b")
}

// TestDriversLimitedToOneVAppWorkWithOneZone verifies that the limit does not affect clusters in one zone.
func TestDriversLimitedToOneVAppWorkWithOneZone(t *testing.T) {
	w := controllertest.NewInZones(t, append(controllertest.InZone("a", "cp-a"),
		controllertest.InZone("a", "md-a")...)...)
	w.Ready("cp-a")
	initialize(w)
	w.Workload = controllertest.NewClient(legacyDriver())

	w.Ready("md-a")
}
