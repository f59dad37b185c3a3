// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
)

func TestExtraConfigAllowedByAnIdentity(t *testing.T) {
	for _, tt := range []struct {
		name    string
		allowed []string
		refused string // empty: none
	}{
		{"none by default", nil, "pciPassthru.use64bitMMIO, svga.present"},
		{"by name, case-insensitively", []string{"PCIPassthru.use64bitMMIO"}, "svga.present"},
		{"a pattern matches the whole key", []string{"pci*", "svga"}, "svga.present"},
		{"a dot is not a wildcard", []string{"pci*", "svga-present"}, "svga.present"},
		{"by patterns", []string{"pciPassthru*", "svga.*"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			entries := []infrav1.ExtraConfigEntry{
				{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"},
				{Key: "svga.present", Value: "FALSE"},
			}

			found := checks.ExtraConfig(entries, "VCDIdentity demo", tt.allowed)

			if tt.refused == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found.Reason).To(Equal(infrav1.ExtraConfigNotAllowedReason))
			g.Expect(found.Message).To(Equal("VCDIdentity demo does not allow these keys of spec.extraConfig: " + tt.refused))
			g.Expect(found.Remedy).To(ContainSubstring("spec.allowedExtraConfig"))
		})
	}
}

func TestNoIdentityAllowsGuestKeys(t *testing.T) {
	for _, key := range []string{"guestinfo.userdata", "GuestInfo.metadata", "disk.EnableUUID"} {
		g := NewWithT(t)

		found := checks.ExtraConfig([]infrav1.ExtraConfigEntry{{Key: key, Value: "1"}}, "VCDIdentity demo", []string{"*"})

		g.Expect(found).NotTo(BeNil(), key)
	}
}
