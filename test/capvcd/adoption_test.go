// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// recordedSite is the URL of the site in the objects of fixtures.
const recordedSite = "https://vcd.fixture.example"

// TestFixturesAreAdopted adopts clusters from recorded objects of CAPVCD in VCD and in a management cluster.
func TestFixturesAreAdopted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts management clusters; not in short mode")
	}
	for _, s := range scenarios() {
		if s.isDeleted || (s.name != "two-arm" && !*all) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			a := startAdoption(t, s.name)
			ran := runningVMs(a.simulator)
			began := time.Now()
			a.installProvider()
			a.awaitReady()
			t.Logf("ready %s after the start of the manager", time.Since(began).Round(100*time.Millisecond))
			a.Expect(changesOf(a.simulator, ran, began)).To(BeEmpty(), "VMs should not be written")

			a.Expect(a.client.Delete(t.Context(), clusterObject())).To(Succeed())
			a.expectGone()
		})
	}
}

// TestDeletionByCAPVCDIsCompleted completes the deletion of a cluster after CAPVCD deleted a VM without recording it.
func TestDeletionByCAPVCDIsCompleted(t *testing.T) {
	requireAll(t)
	a := startAdoption(t, "half-deleted")
	a.Expect(a.client.Delete(t.Context(), clusterObject())).To(Succeed())
	a.installProvider()
	a.trustVCD()
	a.expectGone()
}

// TestAdoptionSurvivesKills kills the manager before and after each of its writes to VCD while it adopts a cluster.
func TestAdoptionSurvivesKills(t *testing.T) {
	requireAll(t)
	for _, name := range []string{"two-arm", "one-arm-with-entity", "ip-spaces"} {
		t.Run(name, func(t *testing.T) {
			a := startAdoption(t, name)
			vms := a.vms()
			objects := a.vcdObjects()
			began := time.Now()
			a.installProvider()
			const flow = "adoption"
			killer := chaos.New(t, chaos.Options{Victim: a.manager, Flow: flow})
			a.simulator.SetGate(killer.Gate)
			killer.During(flow, func() { // The manager cannot write before it trusts VCD's certificate.
				a.trustVCD()
				a.awaitReadyFor(clusterTimeout)
			})

			a.Expect(killer.Writes(flow)).NotTo(BeEmpty())
			for _, w := range killer.Writes(flow) {
				a.Expect(killer.Killed(vcdsim.Arrived, w)).To(BeTrue(), "not killed before %v", w)
				a.Expect(killer.Killed(vcdsim.Worked, w)).To(BeTrue(), "not killed after %v", w)
			}
			a.Expect(changesOf(a.simulator, vms, began)).To(BeEmpty(), "VMs should not be written")
			a.Expect(a.vms()).To(ConsistOf(vms))
			a.Expect(a.vcdObjects()).To(ConsistOf(objects), "no object should be duplicated")
		})
	}
}

// TestCopyOfAClusterIsNotAdopted creates two VCDClusters with the same ID. Objects in VCD do not show which of them
// owns the VMs.
func TestCopyOfAClusterIsNotAdopted(t *testing.T) {
	requireAll(t)
	const elsewhere = "copies"
	a := startAdoption(t, "ip-spaces")
	a.createIn(elsewhere)
	vms := a.vms()
	a.installProvider()
	for _, in := range []string{namespace, elsewhere} {
		a.Eventually(func(g Gomega) {
			trustSiteIn(t.Context(), g, a.client, a.simulator.CA(), in)
			c := &infrav1.VCDCluster{}
			g.Expect(a.client.Get(t.Context(), client.ObjectKey{Namespace: in, Name: clusterName}, c)).To(Succeed())
			g.Expect(conditions.GetReason(c, infrav1.AdoptedCondition)).To(Equal(infrav1.AdoptionUnverifiedReason))
		}, timeout, "250ms").Should(Succeed(), in)
	}
	a.Expect(a.vms()).To(ConsistOf(vms))
	for _, r := range a.simulator.Requests() {
		a.Expect(r.Changes()).To(BeFalse(), "%s %s", r.Method, r.Path)
	}
}

// TestNamesakeInAnotherManagementClusterIsSeparate runs two management clusters whose clusters have the same name in
// one VDC. The second cluster even refers to the VMs of the first one.
func TestNamesakeInAnotherManagementClusterIsSeparate(t *testing.T) {
	requireAll(t)
	const otherID = "NO_RDE_11111111-2222-4333-8444-555555555555"
	a := startAdoption(t, "two-arm")
	a.installProvider()
	a.awaitReady()
	vms := a.vms()
	objects := a.vcdObjects()
	ran := runningVMs(a.simulator)

	namesake := &adoption{
		upgrade:   start(t),
		name:      a.name,
		simulator: a.simulator,
	}
	namesake.installVersions("v1beta2")
	began := time.Now()
	namesake.createIn(namespace, a.infraID(), otherID)
	namesake.installProvider()
	namesake.Eventually(func(g Gomega) {
		trustSite(t.Context(), g, namesake.client, a.simulator.CA())
		c := &infrav1.VCDCluster{}
		g.Expect(namesake.client.Get(t.Context(), client.ObjectKeyFromObject(clusterObject()), c)).To(Succeed())
		g.Expect(conditions.GetReason(c, infrav1.AdoptedCondition)).To(Equal(infrav1.AdoptionUnverifiedReason))
	}, timeout, "250ms").Should(Succeed())
	namesake.Expect(namesake.client.Delete(t.Context(), clusterObject())).To(Succeed())
	namesake.Consistently(a.vms, "20s", "1s").Should(ConsistOf(vms))
	a.Expect(a.vcdObjects()).To(ConsistOf(objects))
	a.Expect(changesOf(a.simulator, ran, began)).To(BeEmpty(), "VMs should not be written")
	a.awaitReady()
}

// An adoption is a management cluster and a simulated VCD with the objects of a fixture.
type adoption struct {
	*upgrade

	name      string
	simulator *vcdsim.Simulator
}

// startAdoption starts an adoption with the CRDs of CAPVCD.
func startAdoption(t *testing.T, name string) *adoption {
	t.Helper()
	return startAdoptionFrom(t, name, name)
}

// startAdoptionFrom starts an adoption whose VCD has the state of another fixture.
func startAdoptionFrom(t *testing.T, name, inVCD string) *adoption {
	t.Helper()
	a := newAdoption(t, name, inVCD)
	a.installVersions("v1beta2")
	a.createIn(namespace)
	return a
}

// newAdoption starts an adoption without the CRDs of CAPVCD. It has the Kubernetes objects of one fixture and the VCD
// state of another.
func newAdoption(t *testing.T, name, inVCD string) *adoption {
	t.Helper()
	a := &adoption{
		upgrade: start(t),
		name:    name,
	}
	var err error
	a.simulator, err = vcdsim.New(vcdsim.Config{
		Model: vcdsim.K8sTenant(),
		Seed:  1,
	})
	a.Expect(err).NotTo(HaveOccurred())
	dump, err := os.ReadFile(filepath.Join(fixtureDir(inVCD), fixtureVCD))
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.simulator.Restore(bytes.NewReader(dump))).To(Succeed())
	a.Expect(a.simulator.Start()).To(Succeed())
	t.Cleanup(func() { _ = a.simulator.Close() })
	return a
}

// createIn creates the objects of the fixture in a namespace. replaced contains pairs of old and new texts.
func (a *adoption) createIn(in string, replaced ...string) {
	a.t.Helper()
	if in != namespace {
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(in)
		a.create(ns)
	}
	text, err := os.ReadFile(filepath.Join(fixtureDir(a.name), fixtureObjects))
	a.Expect(err).NotTo(HaveOccurred())
	waiting := map[string]bool{}
	here := strings.NewReplacer(append(replaced, recordedSite, a.simulator.URL(), "namespace: "+namespace,
		"namespace: "+in)...)
	for _, object := range parse(a.WithT, []byte(here.Replace(string(text)))) {
		if object.GetKind() == "Machine" { // Cluster API adopts Machines without a controller owner.
			object.SetOwnerReferences(a.clusterAsOwner(in))
		}
		if isPending(object, waiting) {
			continue
		}
		status, err := json.Marshal(map[string]any{"status": object.Object["status"]})
		a.Expect(err).NotTo(HaveOccurred())
		_, hasStatus := object.Object["status"]
		a.create(&object)
		if hasStatus {
			a.Expect(a.client.Status().Patch(a.t.Context(), &object, client.RawPatch(types.MergePatchType, status))).
				To(Succeed())
		}
	}
}

// isPending reports whether an object belongs to a machine without bootstrap data, which no controller would create
// here. waiting stores the names of the pending machines, so Machines must precede VCDMachines.
func isPending(object unstructured.Unstructured, waiting map[string]bool) bool {
	switch object.GetKind() {
	case "Machine":
		_, hasData, _ := unstructured.NestedString(object.Object, "spec", "bootstrap", "dataSecretName")
		waiting[object.GetName()] = !hasData
		return !hasData
	case "VCDMachine":
		return waiting[object.GetName()]
	}
	return false
}

func (a *adoption) clusterAsOwner(in string) []metav1.OwnerReference {
	cluster := &clusterv1.Cluster{}
	a.Expect(a.client.Get(a.t.Context(), client.ObjectKey{Namespace: in, Name: clusterName}, cluster)).To(Succeed())
	return []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
}

// trustVCD adds the certificate authority of the simulated VCD to the identity.
func (a *adoption) trustVCD() {
	a.t.Helper()
	a.Eventually(func(g Gomega) { trustSite(a.t.Context(), g, a.client, a.simulator.CA()) }, timeout, "20ms").Should(Succeed())
}

// expectGone waits until the cluster is gone, and checks that none of its objects are left in VCD.
func (a *adoption) expectGone() {
	a.t.Helper()
	awaitGone(a.t.Context(), a.WithT, a.client)
	a.Expect(a.vms()).To(BeEmpty())
	if s := scenarioOf(a.name); s.entity != nil {
		a.Expect(a.vcdObjects()).To(ConsistOf(HavePrefix("1.0.0/entities ")), "the entity belongs to its creator")
		return
	}
	a.Expect(a.vcdObjects()).To(BeEmpty())
}

// awaitReady waits until the cluster and its machines are Ready.
func (a *adoption) awaitReady() {
	a.t.Helper()
	a.awaitReadyFor(timeout)
}

// awaitReadyFor is awaitReady with a timeout.
func (a *adoption) awaitReadyFor(some time.Duration) {
	a.t.Helper()
	machines := a.machines()
	a.Eventually(func(g Gomega) {
		trustSite(a.t.Context(), g, a.client, a.simulator.CA())
		expectReady(a.t.Context(), g, a.client, machines)
	}, some, "100ms").Should(Succeed())
}

// machines returns the number of machines of the cluster.
func (a *adoption) machines() int {
	list := &clusterv1.MachineList{}
	a.Expect(a.client.List(a.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	return len(list.Items)
}

func (a *adoption) vms() []string {
	var ids []string
	state := a.simulator.State()
	for i := range state.VMs {
		ids = append(ids, state.VMs[i].ID)
	}
	return ids
}

// vcdObjects lists the load balancing objects and entities in VCD that contain the ID of the cluster.
func (a *adoption) vcdObjects() []string {
	id := a.infraID()
	var found []string
	for _, d := range a.simulator.State().Documents {
		if strings.Contains(string(d.Body), id) {
			found = append(found, d.Path+" "+d.ID)
		}
	}
	slices.Sort(found)
	return found
}

// infraID returns the ID of the cluster in the fixture.
func (a *adoption) infraID() string {
	text, err := os.ReadFile(filepath.Join(fixtureDir(a.name), fixtureObjects))
	a.Expect(err).NotTo(HaveOccurred())
	for _, object := range parse(a.WithT, text) {
		if id, found, _ := unstructured.NestedString(object.Object, "status", "infraId"); found {
			return id
		}
	}
	a.t.Fatal("no VCDCluster has an infraId")
	return ""
}
