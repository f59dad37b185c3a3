// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
)

func TestARecordIsNotASetting(t *testing.T) {
	g := NewWithT(t)
	c := &infrav1.VCDCluster{}
	c.Spec.Org = "acme"
	before := settings.Of(c)

	c.Generation++
	c.Spec.InfraID = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
	c.Spec.RecordedState.VAppCount = 2
	g.Expect(settings.Of(c)).To(Equal(before))
	g.Expect(settings.Spec(c)).To(Equal(infrav1.VCDClusterSpec{Org: "acme", InfraID: c.Spec.InfraID}))

	c.Spec.Org = "other"
	g.Expect(settings.Of(c)).NotTo(Equal(before))
}

func TestAMachineRecordIsNotASetting(t *testing.T) {
	g := NewWithT(t)
	m := &infrav1.VCDMachine{}
	m.Spec.Template = "ubuntu"
	m.Spec.RecordedState.VMName = "cp-0"

	g.Expect(settings.MachineSpec(m)).To(Equal(infrav1.VCDMachineSpec{Template: "ubuntu"}))
	g.Expect(m.Spec.RecordedState.VMName).To(Equal("cp-0"))
}
