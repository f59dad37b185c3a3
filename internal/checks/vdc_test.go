// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func vdc(mods ...func(*vcd.VDC)) vcd.VDC {
	v := vcd.VDC{
		Ref:             vcd.Ref{ID: "urn:vcloud:vdc:1", Name: "acme-vdc"},
		StorageProfiles: []vcd.StorageProfile{{Enabled: true}},
	}
	for _, mod := range mods {
		mod(&v)
	}
	return v
}

func disabled(v *vcd.VDC) { v.Disabled = true }

func TestAVDCMustBeEnabled(t *testing.T) {
	t.Parallel()
	const field = "spec.ovdc of the VCDCluster"
	tests := []struct {
		name   string
		vdc    vcd.VDC
		field  string
		remedy string // empty: no finding
	}{
		{name: "an enabled VDC", vdc: vdc(), field: field},
		{
			name:  "a VDC that a field references",
			vdc:   vdc(disabled),
			field: field,
			remedy: "ask the provider to enable it, or set another one in " +
				field,
		},
		{name: "a VDC that another field sets", vdc: vdc(disabled), remedy: "ask the provider to enable it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			found := checks.VDCEnabled(tt.vdc, tt.field)

			if tt.remedy == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).To(HaveValue(Equal(checks.Finding{
				Reason:  infrav1.VDCDisabledReason,
				Message: "VDC acme-vdc is disabled, so VCD creates nothing in it",
				Remedy:  tt.remedy,
			})))
		})
	}
}

func TestAVDCMustHaveStorage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	none := func(v *vcd.VDC) { v.StorageProfiles[0].Enabled = false }
	another := func(v *vcd.VDC) { v.StorageProfiles = append(v.StorageProfiles, vcd.StorageProfile{Enabled: true}) }

	g.Expect(checks.AnyStorage(vdc())).To(BeNil())
	g.Expect(checks.AnyStorage(vdc(none, another))).To(BeNil())
	g.Expect(checks.AnyStorage(vdc(none))).To(HaveValue(HaveField("Reason", infrav1.StorageProfileNotFoundReason)))
}
