// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAVMWithAnUncertainOwnerIsKept(t *testing.T) {
	const vm = "vmware-cloud-director://urn:vcloud:vm:11111111-2222-3333-4444-555555555555"
	// object returns a VCDMachine with a VM that has an instance ID.
	object := func(uid, instance string, mods ...func(*infrav1.VCDMachine)) *infrav1.VCDMachine {
		m := &infrav1.VCDMachine{}
		m.UID = types.UID(uid)
		m.Spec.ProviderID = vm
		m.Spec.RecordedState.InstanceID = instance
		for _, mod := range mods {
			mod(m)
		}
		return m
	}
	provisioned := func(m *infrav1.VCDMachine) { m.Status.Initialization.Provisioned = ptr.To(true) }
	ran := func(m *infrav1.VCDMachine) { m.Spec.RecordedState.PoweredOnAt = ptr.To(metav1.Now()) }
	deleted := func(m *infrav1.VCDMachine) { m.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }
	otherVM := func(m *infrav1.VCDMachine) { m.Spec.ProviderID = vm + "x" }
	tests := []struct {
		name     string
		m, other *infrav1.VCDMachine
		want     bool
	}{
		{"another machine that was provisioned with the VM", object("b", "a"), object("a", "a", provisioned), true},
		{"both were restored without their status", object("b", "a"), object("c", "a", ran), true},
		{"a copy of the original that never ran here", object("a", "a"), object("b", "a", ran), false},
		{"a restored machine whose VM never ran", object("b", "a"), object("c", "a"), false},
		{"a deleting machine", object("b", "a"), object("c", "a", ran, deleted), false},
		{"a copy of a working machine", object("b", "a", provisioned), object("c", "a", ran), false},
		{"a machine of another VM", object("b", "a"), object("c", "a", ran, otherVM), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(mayOwn(tt.m, tt.other)).To(Equal(tt.want))
		})
	}
}
