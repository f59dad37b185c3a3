// SPDX-License-Identifier: Apache-2.0

package providerid_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
)

const (
	urn = "urn:vcloud:vm:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11"
	id  = "vmware-cloud-director://" + urn
)

func TestFormat(t *testing.T) {
	g := NewWithT(t)

	g.Expect(providerid.Format(urn)).To(Equal(id))
}

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want string
	}{
		{"a provider ID contains the URN of its VM", id, urn},
		{
			"upper-case digits are unchanged",
			"vmware-cloud-director://urn:vcloud:vm:5F0C8D4E-7D2A-4A53-9C3B-1B1F6F0C2D11",
			"urn:vcloud:vm:5F0C8D4E-7D2A-4A53-9C3B-1B1F6F0C2D11",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := providerid.Parse(tt.in)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestParseRejectsInvalidInput(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want string
	}{
		{"nothing", "", "does not start with"},
		{"another cloud", "vsphere://5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11", "does not start with"},
		{"a bare URN", urn, "does not start with"},
		{
			"another kind of object",
			"vmware-cloud-director://urn:vcloud:vapp:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11",
			"does not name a VM",
		},
		{"a bare UUID", "vmware-cloud-director://5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11", "does not name a VM"},
		{"a short UUID", id[:len(id)-1], "does not end with a UUID"},
		{"a long UUID", id + "1", "does not end with a UUID"},
		{
			"a UUID without hyphens",
			"vmware-cloud-director://urn:vcloud:vm:5f0c8d4e7d2a4a539c3b1b1f6f0c2d11aaaa",
			"does not end with a UUID",
		},
		{"an invalid digit", id[:len(id)-1] + "g", "does not end with a UUID"},
		{
			"a misplaced hyphen",
			"vmware-cloud-director://urn:vcloud:vm:5f0c8d4-e7d2a-4a53-9c3b-1b1f6f0c2d11",
			"does not end with a UUID",
		},
		{"surrounding white space", " " + id, "does not start with"},
		{"a trailing line", id + "\n", "does not end with a UUID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := providerid.Parse(tt.in)

			g.Expect(err).To(MatchError(providerid.ErrInvalid))
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(got).To(BeEmpty())
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		id,
		urn,
		"",
		"vmware-cloud-director://",
		id + "\x00",
		"vmware-cloud-director://urn:vcloud:vm:é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := NewWithT(t)

		got, err := providerid.Parse(s)

		if err == nil {
			g.Expect(providerid.Format(got)).To(Equal(s))
			g.Expect(got).To(HaveLen(len(urn)))
		}
	})
}
