// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const noon = "2026-08-01T12:00:00Z"

func TestWhatIdentifiesAVMIsWrittenOnce(t *testing.T) {
	const id, name, on = infrav1.InstanceIDAnnotation, infrav1.VMNameAnnotation, infrav1.PoweredOnAnnotation
	recorded := map[string]string{id: "uid", name: "cp-0", on: noon}
	with := func(key, value string) map[string]string {
		changed := maps.Clone(recorded)
		changed[key] = value
		return changed
	}
	without := func(key string) map[string]string {
		changed := maps.Clone(recorded)
		delete(changed, key)
		return changed
	}
	field := func(key string) []string { return []string{"metadata.annotations[" + key + "]"} }
	tests := []struct {
		name          string
		before, after map[string]string
		noVM          bool
		refused       []string
	}{
		{"the controller names the VM", nil, map[string]string{id: "uid", name: "cp-0"}, true, nil},
		{"it notes that the VM ran", without(on), recorded, false, nil},
		{
			"clusterctl move is about to delete the object",
			recorded,
			map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""},
			false,
			nil,
		},
		{"other annotations change", recorded, with("mine", "x"), false, nil},
		{"another's instance id is written first", nil, map[string]string{id: "other"}, true, field(id)},
		{"the instance id is replaced", recorded, with(id, "other"), false, field(id)},
		{"the instance id is removed", recorded, without(id), false, field(id)},
		{"the name of the VM is replaced", recorded, with(name, "other"), false, field(name)},
		{"the name of the VM is removed", recorded, without(name), false, field(name)},
		{"the time is replaced", recorded, with(on, "2027-08-01T12:00:00Z"), false, field(on)},
		{"the time is removed", recorded, without(on), false, field(on)},
		{"the time is none", without(on), with(on, "yes"), false, field(on)},
		{"a VM that does not exist ran", without(on), recorded, true, field(on)},
		{"what was wrong before stays", with(on, "yes"), with(on, "yes"), false, nil},
		{"what a move brought along stays", with(id, "old-uid"), with(id, "old-uid"), false, nil},
	}
	for _, tt := range tests {
		for _, deleted := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				g := NewWithT(t)
				before := machine()
				after := machine()
				for _, m := range []*infrav1.VCDMachine{before, after} {
					m.UID = "uid"
					if !tt.noVM {
						m.Spec.ProviderID = someProviderID
					}
				}
				before.Annotations = tt.before
				after.Annotations = tt.after
				if deleted {
					after.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
				}

				_, err := machineValidator().ValidateUpdate(t.Context(), before, after)

				g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
			})
		}
	}
}

func TestAMoveBringsAlongWhatIdentifiesAVM(t *testing.T) {
	g := NewWithT(t)
	m := machine()
	m.UID = "new-uid"
	m.Spec.ProviderID = someProviderID
	m.Annotations = map[string]string{
		infrav1.InstanceIDAnnotation: "old-uid",
		infrav1.VMNameAnnotation:     "cp-0",
		infrav1.PoweredOnAnnotation:  noon,
	}

	_, err := machineValidator().ValidateCreate(t.Context(), m)

	g.Expect(err).NotTo(HaveOccurred())
	m.Annotations[infrav1.PoweredOnAnnotation] = "yes"
	_, err = machineValidator().ValidateCreate(t.Context(), m)
	g.Expect(refusedFields(g, err)).To(Equal([]string{"metadata.annotations[" + infrav1.PoweredOnAnnotation + "]"}))
}

func TestATemplateHasNothingThatIdentifiesAVM(t *testing.T) {
	g := NewWithT(t)
	template := &infrav1.VCDMachineTemplate{}
	template.Spec.Template.Spec = machine().Spec
	template.Spec.Template.ObjectMeta.Annotations = map[string]string{infrav1.InstanceIDAnnotation: "uid", "mine": "x"}

	_, err := machineTemplateValidator().ValidateCreate(t.Context(), template)

	g.Expect(refusedFields(g, err)).To(Equal([]string{
		"spec.template.metadata.annotations[" + infrav1.InstanceIDAnnotation + "]",
	}))
}
