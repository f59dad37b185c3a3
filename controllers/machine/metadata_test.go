// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// entries returns string entries as in a spec.
func entries(metadata map[string]string) []infrav1.MetadataEntry {
	var list []infrav1.MetadataEntry
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		list = append(list, infrav1.MetadataEntry{
			Key:    key,
			Value:  ptr.To(metadata[key]),
			Type:   infrav1.MetadataString,
			Access: infrav1.MetadataReadWrite,
		})
	}
	return list
}

func withMetadata(metadata map[string]string) func(*infrav1.VCDMachine) {
	return func(m *infrav1.VCDMachine) { m.Spec.VMMetadata = entries(metadata) }
}

func setMetadata(w *controllertest.Env, metadata map[string]string) {
	m := w.VCDMachine("md-0")
	m.Spec.VMMetadata = entries(metadata)
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
}

// metadata returns the metadata of the only VM.
func metadata(w *controllertest.Env) map[string]string {
	values := map[string]string{}
	for key, value := range w.Sim.State().VMs[0].Metadata {
		values[key] = value.Value
	}
	return values
}

// eventuallyMetadata reconciles until the VM has metadata and no change is pending.
func eventuallyMetadata(w *controllertest.Env, want map[string]string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(metadata(w)).To(Equal(want))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func metadataWrites(w *controllertest.Env) int {
	n := 0
	for _, r := range w.Sim.Requests() {
		if r.Changes() && strings.Contains(r.Operation, "metadata") {
			n++
		}
	}
	return n
}

func TestMetadataFollowsTheSpec(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0",
		withMetadata(map[string]string{"cost center": "4711 <ä>", "team": "a"}))...)
	w.Ready("md-0")
	w.EventuallyMachine("md-0", infrav1.VMMetadataReadyCondition, infrav1.ReadyReason)
	w.Expect(metadata(w)).To(Equal(map[string]string{"cost center": "4711 <ä>", "team": "a"}))
	w.Expect(metadataWrites(w)).To(Equal(1))
	w.ExpectSettled("md-0")

	w.Edit("md-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) {
		vm.Metadata["theirs"] = vcdsim.Metadata{Type: "MetadataStringValue", Value: "x"}
	})
	setMetadata(w, map[string]string{"team": "b", "env": "test"})
	eventuallyMetadata(w, map[string]string{"team": "b", "env": "test", "theirs": "x"})

	setMetadata(w, nil)
	eventuallyMetadata(w, map[string]string{"theirs": "x"})
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		m := w.VCDMachine("md-0")
		g.Expect(m.Spec.RecordedState.VMMetadata).To(BeZero())
		g.Expect(conditions.Get(m, infrav1.VMMetadataReadyCondition)).To(BeNil())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.ExpectSettled("md-0")
}

func TestMetadataWithALostResponseIsWrittenOrRemoved(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0")...)
	w.Ready("md-0")
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST *metadata", DropAfter: true, Count: 1})
	setMetadata(w, map[string]string{"a": "1"})
	w.EventuallyMachine("md-0", infrav1.VMMetadataReadyCondition, infrav1.SiteUnreachableReason)

	setMetadata(w, nil)

	eventuallyMetadata(w, map[string]string{})
}

func TestForbiddenMetadataIsReported(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0", withMetadata(map[string]string{"a": "1"}))...)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST *metadata", Status: http.StatusForbidden, Count: 1})
	w.Ready("md-0")

	w.EventuallyMachine("md-0", infrav1.VMMetadataReadyCondition, infrav1.ForbiddenReason)
	w.Ready("md-0")

	w.Later(time.Hour)
	w.EventuallyMachine("md-0", infrav1.VMMetadataReadyCondition, infrav1.ReadyReason)
	w.Expect(metadata(w)).To(Equal(map[string]string{"a": "1"}))
}

// TestMetadataHasTypesAndDomains writes an entry of each type, and entries that only a system administrator may write.
func TestMetadataHasTypesAndDomains(t *testing.T) {
	typed := []infrav1.MetadataEntry{
		{Key: "boolean", Value: ptr.To("true"), Type: infrav1.MetadataBoolean},
		{Key: "number", Value: ptr.To("4711"), Type: infrav1.MetadataNumber},
		{Key: "time", Value: ptr.To("2026-12-31T23:59:59+01:00"), Type: infrav1.MetadataDateTime},
		{Key: "read-only", Value: ptr.To("a"), Access: infrav1.MetadataReadOnly},
		{Key: "private", Value: ptr.To("b"), Access: infrav1.MetadataPrivate},
	}
	w := controllertest.New(t, controllertest.NewMachine("md-0",
		func(m *infrav1.VCDMachine) { m.Spec.VMMetadata = typed })...)
	secret := w.Secret("tenant-credentials")
	secret.Data[infrav1.SecretUsername] = []byte("System/administrator")
	secret.Data[infrav1.SecretPassword] = []byte("password")
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	w.Ready("md-0")
	w.EventuallyMachine("md-0", infrav1.VMMetadataReadyCondition, infrav1.ReadyReason)

	w.Expect(w.Sim.State().VMs[0].Metadata).To(And(
		HaveKeyWithValue("boolean", HaveField("Type", "MetadataBooleanValue")),
		HaveKeyWithValue("number", HaveField("Type", "MetadataNumberValue")),
		HaveKeyWithValue("time", HaveField("Type", "MetadataDateTimeValue")),
		HaveKeyWithValue("SYSTEM/read-only", HaveField("Visibility", "READONLY")),
		HaveKeyWithValue("SYSTEM/private", HaveField("Visibility", "PRIVATE"))))
	w.ExpectSettled("md-0")

	m := w.VCDMachine("md-0")
	m.Spec.VMMetadata = nil
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	eventuallyMetadata(w, map[string]string{})
}
