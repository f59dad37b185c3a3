// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var runZones = flag.Bool("zones", false, "Run a whole cluster over three zones, with an upgrade.")

// olderVersion is the initial Kubernetes version of clusters that span zones.
const olderVersion = "v1.35.4"

// A zonedCluster is a cluster from the template for three zones, with three control plane machines and workers in each
// zone.
type zonedCluster struct{ *testCluster }

func newZonedCluster(t *testing.T) zonedCluster {
	t.Helper()
	l := newTestCluster(t, shared.replica, 3, func(c *vcdsim.Config) {
		c.Model = vcdsim.ThreeZones()
		catalog := &c.Model.Orgs[1].Catalogs[0]
		old := catalog.Templates[0]
		old.Name = simsite.TemplateName(olderVersion)
		old.KubernetesVersion = olderVersion
		old.VMs = slices.Clone(old.VMs)
		old.VMs[0].Name = old.Name
		catalog.Templates = append(catalog.Templates, old)
	})
	l.flavor = "-zones"
	l.controlPlanes = 3
	l.values = map[string]string{
		"VCD_ZONE_A_VDC":       "acme-vdc",
		"VCD_ZONE_B_VDC":       "acme-vdc-b",
		"VCD_ZONE_C_VDC":       "acme-vdc-c",
		"KUBERNETES_VERSION":   olderVersion,
		"VCD_TEMPLATE_NAME":    simsite.TemplateName(olderVersion),
		"WORKER_MACHINE_COUNT": "1",
	}
	return zonedCluster{l}
}

// vmsByVDC counts the VMs of a control plane ("-control-plane") or workers ("-md-") in each VDC.
func (l zonedCluster) vmsByVDC(kind string) map[string]int {
	state := l.State()
	vdcs := map[string]string{}
	vApps := map[string]string{}
	for _, v := range state.Model.Orgs[1].VDCs {
		vdcs[v.ID] = v.Name
	}
	for i := range state.VApps {
		vApps[state.VApps[i].ID] = vdcs[state.VApps[i].VDCID]
	}
	found := map[string]int{}
	for i := range state.VMs {
		if strings.HasPrefix(state.VMs[i].Name, l.name+kind) {
			found[vApps[state.VMs[i].VAppID]]++
		}
	}
	return found
}

// waitForFailureDomains waits until the cluster has exactly the failure domains of the zones.
func (l zonedCluster) waitForFailureDomains(zones ...string) {
	l.t.Helper()
	var want []string
	for _, zone := range zones {
		want = append(want, l.name+"-"+zone)
	}
	c := &clusterv1.Cluster{ObjectMeta: l.meta(l.name)}
	l.g.Eventually(func() (names []string, err error) {
		err = l.get(c)
		for _, d := range c.Status.FailureDomains {
			names = append(names, d.Name)
		}
		return names, err
	}, timeout, "250ms").Should(ConsistOf(want))
}

func (l zonedCluster) workersOf(zone string) *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{ObjectMeta: l.meta(l.name + "-md-" + zone)}
}

// scaleZone changes the number of workers in a zone.
func (l zonedCluster) scaleZone(zone string, workers int) {
	l.t.Helper()
	md := l.workersOf(zone)
	l.g.Expect(l.get(md)).To(Succeed())
	l.workers += workers - int(*md.Spec.Replicas)
	l.patch(md, fmt.Sprintf(`{"spec":{"replicas":%d}}`, workers))
}

func (l zonedCluster) controlPlane() *unstructured.Unstructured {
	plane := &unstructured.Unstructured{}
	plane.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	plane.SetKind("KubeadmControlPlane")
	plane.SetNamespace(l.namespace)
	plane.SetName(l.name + "-control-plane")
	return plane
}

// upgrade replaces all machines with machines of the newer Kubernetes version.
func (l zonedCluster) upgrade() {
	l.t.Helper()
	newer := func(s *infrav1.VCDMachineSpec) { s.Template = simsite.TemplateName(programs.KubernetesVersion) }
	l.copyTemplate(l.name+"-control-plane", l.name+"-newer-control-plane", newer)
	l.copyTemplate(l.name+"-md-0", l.name+"-newer-md", newer)
	l.replaceAll(l.name+"-control-plane", func() {
		l.patch(l.controlPlane(), fmt.Sprintf(
			`{"spec":{"version":%q,"machineTemplate":{"spec":{"infrastructureRef":{"name":%q}}}}}`,
			programs.KubernetesVersion, l.name+"-newer-control-plane"))
	})
	l.replaceAll(l.name+"-md-", func() {
		for _, zone := range []string{"a", "b", "c"} {
			l.patch(l.workersOf(zone), fmt.Sprintf(
				`{"spec":{"template":{"spec":{"version":%q,"infrastructureRef":{"name":%q}}}}}`,
				programs.KubernetesVersion, l.name+"-newer-md"))
		}
	})
	for _, m := range l.machines() {
		l.g.Expect(m.Spec.Version).To(Equal(programs.KubernetesVersion))
	}
}

// TestAClusterOverThreeZones creates a cluster, scales it, upgrades it to another Kubernetes version, removes one zone
// from the selector, and deletes the cluster.
func TestAClusterOverThreeZones(t *testing.T) {
	if !*runZones {
		t.Skip("takes minutes of CPU time; make e2e runs it")
	}
	t.Parallel()
	l := newZonedCluster(t)
	spread := map[string]int{"acme-vdc": 1, "acme-vdc-b": 1, "acme-vdc-c": 1}

	l.provision()
	l.g.Expect(l.vmsByVDC("-control-plane")).To(Equal(spread))
	l.g.Expect(l.vmsByVDC("-md-")).To(Equal(spread))

	l.scaleZone("b", 2)
	l.up()
	l.g.Expect(l.vmsByVDC("-md-b")).To(Equal(map[string]int{"acme-vdc-b": 2}))
	l.scaleZone("b", 1)
	l.up()

	l.upgrade()
	l.g.Expect(l.vmsByVDC("-control-plane")).To(Equal(spread))
	l.g.Expect(l.vmsByVDC("-md-")).To(Equal(spread))

	c := &infrav1.VCDDeploymentZone{ObjectMeta: l.meta(l.name + "-c")}
	l.patch(c, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, clusterv1.ClusterNameLabel))
	l.waitForFailureDomains("a", "b")
	l.up() // Existing machines in zone c stay.
	l.g.Expect(l.vmsByVDC("-control-plane")).To(Equal(spread))
	l.g.Expect(l.vmsByVDC("-md-c")).To(Equal(map[string]int{"acme-vdc-c": 1}))

	l.rollControlPlane(l.name+"-larger-control-plane", larger)
	l.g.Expect(l.vmsByVDC("-control-plane")).NotTo(HaveKey("acme-vdc-c"))
	l.destroy()
}

// TestLossOfAZone disables a VDC. Its machines remain, and the conditions of new machines report the reason why they
// cannot be placed. The rest of the cluster keeps working, and a control plane machine is remediated into another zone.
func TestLossOfAZone(t *testing.T) {
	t.Parallel()
	l := newZonedCluster(t)
	l.provision()
	before := l.vmsByVDC("")

	l.Edit(func(e *vcdsim.Editor) { e.VDC("acme-vdc-c").Disabled = true })
	zone := &infrav1.VCDDeploymentZone{ObjectMeta: l.meta(l.name + "-c")}
	l.g.Eventually(func() (string, error) {
		l.trigger(zone)
		return l.state(zone, infrav1.FailureDomainReadyCondition)
	}, timeout, "500ms").Should(HavePrefix("False " + infrav1.VDCDisabledReason))
	l.waitForFailureDomains("a", "b")
	l.up()
	l.g.Expect(l.vmsByVDC("")).To(Equal(before), "existing machines in the zone stay")

	l.remediateControlPlane("c")
	l.up()
	l.g.Expect(l.vmsByVDC("-control-plane")).To(And(Not(HaveKey("acme-vdc-c")), HaveLen(2)))

	l.scaleZone("c", 2)
	l.g.Eventually(l.placementFailures, timeout, "250ms").Should(ConsistOf(HavePrefix("False " + infrav1.VDCDisabledReason)))
	l.scaleZone("a", 2)
	l.g.Eventually(func() map[string]int { return l.vmsByVDC("-md-a") }, longTimeout, "250ms").Should(
		Equal(map[string]int{"acme-vdc": 2}), "other zones keep working")

	l.Edit(func(e *vcdsim.Editor) { e.VDC("acme-vdc-c").Disabled = false })
	l.g.Eventually(func() (string, error) {
		l.trigger(zone)
		return l.state(zone, clusterv1.ReadyCondition)
	}, timeout, "500ms").Should(HavePrefix("True"))
	l.up()
	l.g.Expect(l.vmsByVDC("-md-c")).To(Equal(map[string]int{"acme-vdc-c": 2}))
	l.destroy()
}

// placementFailures returns the states of PlacementReady that are False.
func (l zonedCluster) placementFailures() []string {
	list := &infrav1.VCDMachineList{}
	l.g.Expect(shared.client.List(l.t.Context(), list, client.InNamespace(l.namespace))).To(Succeed())
	var found []string
	for i := range list.Items {
		state, err := l.state(&list.Items[i], infrav1.PlacementReadyCondition)
		if err == nil && strings.HasPrefix(state, "False") {
			found = append(found, state)
		}
	}
	return found
}

// remediateControlPlane triggers the remediation of the control plane machine in a zone, and waits until it is gone.
func (l zonedCluster) remediateControlPlane(zone string) {
	l.t.Helper()
	check := &clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-control-plane")}
	check.Spec.ClusterName = l.name
	check.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: l.name}
	check.Spec.Selector.MatchLabels[clusterv1.MachineControlPlaneLabel] = ""
	check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To[int32](1200)
	l.create(check)
	for _, m := range l.machines(client.HasLabels{clusterv1.MachineControlPlaneLabel}) {
		if m.Spec.FailureDomain != l.name+"-"+zone {
			continue
		}
		l.patch(&m, fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, clusterv1.RemediateMachineAnnotation))
		l.g.Eventually(func() error { return l.get(&m) }, longTimeout, "250ms").ShouldNot(Succeed())
		return
	}
	l.t.Fatalf("no control plane machine is in zone %s", zone)
}
