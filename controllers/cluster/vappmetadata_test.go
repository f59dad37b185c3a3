// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// setVAppMetadata sets string entries in the spec of the VCDCluster.
func setVAppMetadata(w *controllertest.Env, metadata map[string]string) {
	c := w.VCDCluster()
	c.Spec.VAppMetadata = nil
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		c.Spec.VAppMetadata = append(c.Spec.VAppMetadata, infrav1.MetadataEntry{
			Key:   key,
			Value: ptr.To(metadata[key]),
			Type:  infrav1.MetadataString,
		})
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// vAppMetadata returns the metadata of a vApp.
func vAppMetadata(w *controllertest.Env, name string) map[string]string {
	values := map[string]string{}
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for key, value := range e.VApp(name).Metadata {
			values[key] = value.Value
		}
	})
	return values
}

// eventuallyVAppMetadata reconciles until the vApp has metadata.
func eventuallyVAppMetadata(w *controllertest.Env, name string, want map[string]string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(vAppMetadata(w, name)).To(Equal(want))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func vAppMetadataWrites(w *controllertest.Env) int {
	n := 0
	for _, r := range w.Sim.Requests() {
		if r.Changes() && strings.Contains(r.Operation, "metadata") {
			n++
		}
	}
	return n
}

// expectNoRequests checks that another pass of the cluster sends no request.
func expectNoRequests(w *controllertest.Env) {
	before := len(w.Sim.Requests())
	version := w.VCDCluster().ResourceVersion
	for range 2 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.Sim.Requests()).To(HaveLen(before))
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(version))
}

// withVApp returns an environment with a ready cluster and a machine in its vApp.
func withVApp(t *testing.T, metadata map[string]string) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, controllertest.Machines("md-0", "md-1")...)
	setVAppMetadata(w, metadata)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("md-0")
	return w
}

func TestVAppMetadataFollowsTheSpec(t *testing.T) {
	w := withVApp(t, map[string]string{"cost center": "4711 <ä>", "team": "a"})
	eventuallyVAppMetadata(w, controllertest.ClusterName, map[string]string{"cost center": "4711 <ä>", "team": "a"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
	w.Expect(vAppMetadataWrites(w)).To(Equal(1))
	expectNoRequests(w)

	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.VApp(controllertest.ClusterName).Metadata["theirs"] = vcdsim.Metadata{Type: "MetadataStringValue", Value: "x"}
	})
	setVAppMetadata(w, map[string]string{"team": "b", "env": "test"})
	eventuallyVAppMetadata(w, controllertest.ClusterName, map[string]string{"team": "b", "env": "test", "theirs": "x"})

	setVAppMetadata(w, nil)
	eventuallyVAppMetadata(w, controllertest.ClusterName, map[string]string{"theirs": "x"})
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := w.VCDCluster()
		g.Expect(c.Spec.RecordedState.VAppMetadata).To(BeEmpty())
		g.Expect(conditions.Get(c, infrav1.VAppMetadataReadyCondition)).To(BeNil())
	}, controllertest.Patience, "5ms").Should(Succeed())
	expectNoRequests(w)
}

func TestAClusterWithoutMachinesHasNoVAppToWriteTo(t *testing.T) {
	w := controllertest.New(t)
	setVAppMetadata(w, map[string]string{"team": "a"})

	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)

	w.Expect(w.Writes()).To(BeZero())
	expectNoRequests(w)
}

func TestEveryVAppInZonesGetsMetadata(t *testing.T) {
	w := controllertest.NewInZones(t, slices.Concat(controllertest.InZone("a", "md-0"), controllertest.InZone("b", "md-1"))...)
	setVAppMetadata(w, map[string]string{"team": "a"})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("md-0", "md-1")

	eventuallyVAppMetadata(w, controllertest.ClusterName+"-a", map[string]string{"team": "a"})
	eventuallyVAppMetadata(w, controllertest.ClusterName+"-b", map[string]string{"team": "a"})

	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
	w.Expect(vAppMetadataWrites(w)).To(Equal(2))
	expectNoRequests(w)
}

func TestAVAppThatIsCreatedAgainGetsMetadata(t *testing.T) {
	w := withVApp(t, map[string]string{"team": "a"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)

	w.DeleteVAppByHand(t, controllertest.ClusterName)
	w.Ready("md-1")

	eventuallyVAppMetadata(w, controllertest.ClusterName, map[string]string{"team": "a"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
}

func TestMetadataOfADeletedVAppIsForgotten(t *testing.T) {
	w := withVApp(t, map[string]string{"team": "a"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
	w.DeleteVAppByHand(t, controllertest.ClusterName)

	setVAppMetadata(w, map[string]string{"team": "b"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.VAppUnverifiedReason)
	setVAppMetadata(w, nil)

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.VCDCluster().Spec.RecordedState.VAppMetadata).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestARenamedVAppGetsMetadata(t *testing.T) {
	w := withVApp(t, map[string]string{"team": "a"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Name = "renamed" })

	setVAppMetadata(w, map[string]string{"team": "b"})

	eventuallyVAppMetadata(w, "renamed", map[string]string{"team": "b"})
}

func TestAVAppOfAnotherOwnerKeepsItsMetadata(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.ComposeForeign(controllertest.ClusterName)
	w.Record(func(recorded *infrav1.VCDClusterRecordedState) { recorded.VAppCount = 1 })
	setVAppMetadata(w, map[string]string{"team": "a"})

	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.NameConflictReason)

	w.Expect(vAppMetadata(w, controllertest.ClusterName)).To(BeEmpty())
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestVAppMetadataWithALostResponseIsRemoved(t *testing.T) {
	w := withVApp(t, nil)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST *metadata", DropAfter: true, Count: 1})
	setVAppMetadata(w, map[string]string{"a": "1"})
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.SiteUnreachableReason)

	setVAppMetadata(w, nil)

	eventuallyVAppMetadata(w, controllertest.ClusterName, map[string]string{})
}

func TestForbiddenVAppMetadataIsReported(t *testing.T) {
	w := withVApp(t, nil)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST *metadata", Status: http.StatusForbidden, Count: 1})
	setVAppMetadata(w, map[string]string{"a": "1"})

	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ForbiddenReason)
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())

	w.Later(time.Hour)
	w.EventuallyCluster(infrav1.VAppMetadataReadyCondition, infrav1.ReadyReason)
	w.Expect(vAppMetadata(w, controllertest.ClusterName)).To(Equal(map[string]string{"a": "1"}))
}
