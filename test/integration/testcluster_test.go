// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/cluster-api/util/conditions"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// testClusters counts the test clusters of all tests. Each has a unique endpoint and unique VM IDs, because their
// simulated nodes share one server.
var testClusters atomic.Int64

// A testCluster is a complete cluster from the shipped template: a control plane and workers with two NICs each, whose
// VMs become nodes.
type testCluster struct {
	*site

	name, endpoint string
	controlPlanes  int
	workers        int
	balancer       map[string]any // spec.loadBalancer of the VCDCluster; nil keeps that of the template
	perMachine     bool           // each VM has a separate vApp
	inPlace        bool           // machines set CPUs and memory without a sizing policy, and rollouts do not surge

	flavor string            // selects the template cluster-template<flavor>.yaml
	values map[string]string // values of additional variables of the template
}

// newTestCluster prepares a site and a cluster in it. provision creates the cluster.
func newTestCluster(t *testing.T, c replica, workers int, mods ...func(*vcdsim.Config)) *testCluster {
	t.Helper()
	number := testClusters.Add(1)
	l := &testCluster{
		name:          fmt.Sprintf("test-%d", number),
		endpoint:      fmt.Sprintf("192.168.100.%d", 200+number),
		controlPlanes: 1,
		workers:       workers,
	}
	l.site = newSiteOf(t, c, append([]func(*vcdsim.Config){func(c *vcdsim.Config) {
		c.Profile = brisk
		c.Seed = number
		c.Guest = shared.workloads
		vdc := &c.Model.Orgs[1].VDCs[0]
		backup := vdc.Networks[1]
		backup.Name = "backup"
		backup.Description = "Backup traffic"
		vdc.Networks = append(vdc.Networks, backup)
	}}, mods...)...)
	return l
}

// provision creates the objects of the cluster and waits until it is up.
func (l *testCluster) provision() {
	l.t.Helper()
	for _, object := range l.manifest() {
		l.create(object)
	}
	l.up()
}

// manifest renders the shipped template with the values of this cluster.
func (l *testCluster) manifest() []*unstructured.Unstructured {
	l.t.Helper()
	template, err := os.ReadFile(filepath.Join(shared.Root, "templates", "cluster-template"+l.flavor+".yaml"))
	l.g.Expect(err).NotTo(HaveOccurred())
	values := simsite.Variables(l.Simulator)
	maps.Copy(values, map[string]string{
		"CLUSTER_NAME":                    l.name,
		"KUBERNETES_VERSION":              programs.KubernetesVersion,
		"CONTROL_PLANE_ENDPOINT_IP":       l.endpoint,
		"CONTROL_PLANE_MACHINE_COUNT":     fmt.Sprint(l.controlPlanes),
		"WORKER_MACHINE_COUNT":            fmt.Sprint(l.workers),
		"VCD_CONTROL_PLANE_SIZING_POLICY": "small",
		"VCD_WORKER_SIZING_POLICY":        "small",
		// The site may be behind a front.
		"VCD_SITE":          l.URL(),
		"VCD_CA_BUNDLE_B64": base64.StdEncoding.EncodeToString(l.CA()),
	})
	maps.Copy(values, l.values)
	filled, err := yamlprocessor.NewSimpleProcessor().Process(template,
		func(name string) (string, error) { return values[name], nil })
	l.g.Expect(err).NotTo(HaveOccurred())
	objects, err := utilyaml.ToUnstructured(filled)
	l.g.Expect(err).NotTo(HaveOccurred())
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for i := range objects {
		objects[i].SetNamespace(l.namespace)
		l.adapt(&objects[i])
		out = append(out, &objects[i])
	}
	return out
}

// adapt adds to machines the label of the replica and a second network, and lets the health check replace the only
// worker. It also applies the settings of the test cluster.
func (l *testCluster) adapt(object *unstructured.Unstructured) {
	l.t.Helper()
	put := func(value any, path ...string) {
		l.g.Expect(unstructured.SetNestedField(object.Object, value, path...)).To(Succeed())
	}
	switch object.GetKind() {
	case "VCDCluster":
		for key, value := range l.balancer {
			put(value, "spec", "loadBalancer", key)
		}
		if l.perMachine {
			put(string(infrav1.VAppPerMachine), "spec", "vApp", "layout")
		}
	case "KubeadmControlPlane":
		put(l.replica.label, "spec", "machineTemplate", "metadata", "labels", clusterv1.WatchLabel)
		if l.inPlace {
			put(int64(0), "spec", "rollout", "strategy", "rollingUpdate", "maxSurge")
		}
	case "MachineDeployment":
		put(l.replica.label, "spec", "template", "metadata", "labels", clusterv1.WatchLabel)
		if l.inPlace {
			put(string(clusterv1.RollingUpdateMachineDeploymentStrategyType), "spec", "rollout", "strategy", "type")
			put(int64(0), "spec", "rollout", "strategy", "rollingUpdate", "maxSurge")
			put(int64(1), "spec", "rollout", "strategy", "rollingUpdate", "maxUnavailable")
		}
	case "MachineHealthCheck":
		put("100%", "spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo")
	case "VCDMachineTemplate":
		if l.inPlace {
			unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "sizingPolicy")
			put(int64(2), "spec", "template", "spec", "cpus")
			put("4Gi", "spec", "template", "spec", "memory")
		}
		if l.flavor != "" {
			return // Its zones define the networks.
		}
		second := "storage"
		if strings.HasSuffix(object.GetName(), "-md-0") {
			second = "backup" // The vApp does not have it yet when the workers are created.
		} else {
			put("24Gi", "spec", "template", "spec", "diskSize") // Linked clones are consolidated before their disks are expanded.
		}
		l.g.Expect(unstructured.SetNestedSlice(object.Object, []any{
			map[string]any{"addressSource": "StaticPool"},
			map[string]any{"name": second, "addressSource": "StaticPool"},
		}, "spec", "template", "spec", "networks")).To(Succeed())
	}
}

// up waits until all machines are ready, and VCD contains only their VMs.
func (l *testCluster) up() {
	l.t.Helper()
	want := l.controlPlanes + l.workers
	l.g.Eventually(func(g Gomega) {
		machines := l.machines()
		g.Expect(machines).To(HaveLen(want))
		for i := range machines {
			g.Expect(conditions.IsTrue(&machines[i], clusterv1.ReadyCondition)).To(BeTrue(), "%s is not ready: %v",
				machines[i].Name, machines[i].Status.Conditions)
		}
		g.Expect(l.State().VMs).To(HaveLen(want))
	}, longTimeout, "250ms").Should(Succeed())
	l.checkConditions()
}

// machines lists the Machines of the cluster, including those that are being deleted.
func (l *testCluster) machines(mods ...client.ListOption) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	l.g.Expect(shared.client.List(l.t.Context(), list, append(mods, client.InNamespace(l.namespace))...)).To(Succeed())
	return list.Items
}

func (l *testCluster) deployment() *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{ObjectMeta: l.meta(l.name + "-md-0")}
}

// patch applies a merge patch to an object. It retries, because a webhook may be unavailable for a moment.
func (l *testCluster) patch(obj client.Object, patch string) {
	l.t.Helper()
	l.g.Eventually(func() error {
		return shared.client.Patch(l.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	}, timeout, "250ms").Should(Succeed())
}

// scale changes the number of workers.
func (l *testCluster) scale(workers int) {
	l.t.Helper()
	l.workers = workers
	l.patch(l.deployment(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, workers))
	l.up()
}

// roll replaces the workers with workers from a new template.
func (l *testCluster) roll(name string, change func(*infrav1.VCDMachineSpec)) {
	l.t.Helper()
	old := l.name + "-md-0"
	l.copyTemplate(old, name, change)
	l.replaceAll(old, func() {
		l.patch(l.deployment(), fmt.Sprintf(`{"spec":{"template":{"spec":{"infrastructureRef":{"name":%q}}}}}`, name))
	})
}

// rollControlPlane replaces the control plane with one from a new template.
func (l *testCluster) rollControlPlane(name string, change func(*infrav1.VCDMachineSpec)) {
	l.t.Helper()
	old := l.name + "-control-plane"
	l.copyTemplate(old, name, change)
	l.replaceAll(old, func() {
		l.patch(l.plane(), fmt.Sprintf(`{"spec":{"machineTemplate":{"spec":{"infrastructureRef":{"name":%q}}}}}`, name))
	})
}

// copyTemplate creates a template that is a changed copy of another.
func (l *testCluster) copyTemplate(name, copied string, change func(*infrav1.VCDMachineSpec)) {
	l.t.Helper()
	old := &infrav1.VCDMachineTemplate{ObjectMeta: l.meta(name)}
	l.g.Expect(l.get(old)).To(Succeed())
	next := &infrav1.VCDMachineTemplate{ObjectMeta: l.meta(copied), Spec: *old.Spec.DeepCopy()}
	change(&next.Spec.Template.Spec)
	l.create(next)
}

// replaceAll runs do, which triggers the replacement of all VMs whose names have the prefix, and waits until they are
// replaced.
func (l *testCluster) replaceAll(prefix string, do func()) {
	l.t.Helper()
	before := l.State().VMs
	do()
	l.g.Eventually(func(g Gomega) {
		vms := l.State().VMs
		for i := range vms {
			vm := &vms[i]
			g.Expect(strings.HasPrefix(vm.Name, prefix) && contains(before, vm.ID)).To(BeFalse(),
				"%s still exists, from the old template", vm.Name)
		}
	}, longTimeout, "250ms").Should(Succeed())
	l.up()
}

func contains(vms []vcdsim.VM, id string) bool {
	for i := range vms {
		if vms[i].ID == id {
			return true
		}
	}
	return false
}

// anyWorker returns the first worker and the ID of its VM.
func (l *testCluster) anyWorker() (worker *clusterv1.Machine, vm string) {
	l.t.Helper()
	workers := l.machines(client.HasLabels{clusterv1.MachineDeploymentNameLabel})
	l.g.Expect(workers).NotTo(BeEmpty())
	m := &infrav1.VCDMachine{ObjectMeta: l.meta(workers[0].Spec.InfrastructureRef.Name)}
	l.g.Expect(l.get(m)).To(Succeed())
	id, err := providerid.Parse(m.Spec.ProviderID)
	l.g.Expect(err).NotTo(HaveOccurred())
	return &workers[0], strings.TrimPrefix(id, "urn:vcloud:vm:")
}

// repair powers off the VM of a worker in VCD, requests its remediation, and waits until the MachineHealthCheck
// replaces the worker.
func (l *testCluster) repair() {
	l.t.Helper()
	broken, vm := l.anyWorker()
	l.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(vm)) })
	l.patch(broken, fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, clusterv1.RemediateMachineAnnotation))
	l.g.Eventually(func() error { return l.get(broken) }, longTimeout, "250ms").ShouldNot(Succeed(), "%s still exists",
		broken.Name)
	l.up()
}

// destroy deletes the cluster, and waits until its objects are gone from the management cluster and VCD.
func (l *testCluster) destroy() {
	l.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: l.meta(l.name)}
	l.g.Expect(shared.client.Delete(l.t.Context(), cluster)).To(Succeed())
	l.g.Eventually(func() bool { return client.IgnoreNotFound(l.get(cluster)) == nil && l.get(cluster) != nil }, longTimeout,
		"250ms").Should(BeTrue())
	l.empty()
	l.g.Expect(l.machines()).To(BeEmpty())
}
