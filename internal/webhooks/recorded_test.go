// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestTheIdentityOfAVMIsImmutable(t *testing.T) {
	noon := ptr.To(metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	later := ptr.To(metav1.NewTime(noon.Add(time.Hour)))
	recorded := infrav1.VCDMachineRecordedState{
		InstanceID:        "uid",
		VMName:            "cp-0",
		DeploymentZone:    "a",
		OVDCID:            someVDC,
		PoweredOnAt:       noon,
		DeleteRequestedAt: noon,
		VMGoneAt:          noon,
	}
	with := func(change func(*infrav1.VCDMachineRecordedState)) infrav1.VCDMachineRecordedState {
		changed := *recorded.DeepCopy()
		change(&changed)
		return changed
	}
	none := infrav1.VCDMachineRecordedState{}
	tests := []struct {
		name          string
		before, after infrav1.VCDMachineRecordedState
		refused       []string
	}{
		{name: "the controller names the VM", before: none, after: infrav1.VCDMachineRecordedState{InstanceID: "uid", VMName: "cp-0"}},
		{
			name:   "it records that the VM ran",
			before: with(func(r *infrav1.VCDMachineRecordedState) { r.PoweredOnAt = nil }),
			after:  recorded,
		},
		{
			name:   "other records change",
			before: recorded,
			after:  with(func(r *infrav1.VCDMachineRecordedState) { r.MissingSince = later }),
		},
		{
			name:    "another's instance ID is written first",
			before:  none,
			after:   infrav1.VCDMachineRecordedState{InstanceID: "other"},
			refused: []string{"instanceID"},
		},
		{
			name:    "the instance ID is replaced",
			before:  recorded,
			after:   with(func(r *infrav1.VCDMachineRecordedState) { r.InstanceID = "other" }),
			refused: []string{"instanceID"},
		},
		{
			name:    "the name of the VM is removed",
			before:  recorded,
			after:   with(func(r *infrav1.VCDMachineRecordedState) { r.VMName = "" }),
			refused: []string{"vmName"},
		},
		{
			name:    "the time is replaced",
			before:  recorded,
			after:   with(func(r *infrav1.VCDMachineRecordedState) { r.PoweredOnAt = later }),
			refused: []string{"poweredOnAt"},
		},
		{
			name:   "all records are lost",
			before: recorded,
			after:  none,
			refused: []string{
				"instanceID", "vmName", "deploymentZone", "ovdcID", "poweredOnAt", "deleteRequestedAt", "vmGoneAt",
			},
		},
		{
			name:   "what a move brought along stays",
			before: infrav1.VCDMachineRecordedState{InstanceID: "old-uid"},
			after:  infrav1.VCDMachineRecordedState{InstanceID: "old-uid"},
		},
	}
	for _, tt := range tests {
		for _, deleted := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				g := NewWithT(t)
				before := machine()
				after := machine()
				for _, m := range []*infrav1.VCDMachine{before, after} {
					m.UID = "uid"
					m.Spec.ProviderID = someProviderID
				}
				before.Spec.RecordedState = tt.before
				after.Spec.RecordedState = tt.after
				if deleted {
					after.DeletionTimestamp = ptr.To(metav1.Now())
				}
				var refused []string
				for _, name := range tt.refused {
					refused = append(refused, "spec.recordedState."+name)
				}

				_, err := machineValidator(false).ValidateUpdate(t.Context(), before, after)

				g.Expect(refusedFields(g, err)).To(Equal(refused))
			})
		}
	}
}

func TestAMoveBringsAlongWhatIdentifiesAVM(t *testing.T) {
	g := NewWithT(t)
	m := machine()
	m.UID = "new-uid"
	m.Spec.ProviderID = someProviderID
	m.Spec.RecordedState.InstanceID = "old-uid"
	m.Spec.RecordedState.VMName = "cp-0"

	_, err := machineValidator(false).ValidateCreate(t.Context(), m)

	g.Expect(err).NotTo(HaveOccurred())
}
