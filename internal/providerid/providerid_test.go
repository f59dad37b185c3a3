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
		{name: "a provider ID contains the URN of its VM", in: id, want: urn},
		{
			name: "upper-case digits are unchanged",
			in:   "vmware-cloud-director://urn:vcloud:vm:5F0C8D4E-7D2A-4A53-9C3B-1B1F6F0C2D11",
			want: "urn:vcloud:vm:5F0C8D4E-7D2A-4A53-9C3B-1B1F6F0C2D11",
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
		{name: "nothing", want: "does not start with"},
		{name: "another cloud", in: "vsphere://5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11", want: "does not start with"},
		{name: "a bare URN", in: urn, want: "does not start with"},
		{
			name: "another kind of object",
			in:   "vmware-cloud-director://urn:vcloud:vapp:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11",
			want: "does not name a VM",
		},
		{name: "a bare UUID", in: "vmware-cloud-director://5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11", want: "does not name a VM"},
		{name: "a short UUID", in: id[:len(id)-1], want: "does not end with a UUID"},
		{name: "a long UUID", in: id + "1", want: "does not end with a UUID"},
		{
			name: "a UUID without hyphens",
			in:   "vmware-cloud-director://urn:vcloud:vm:5f0c8d4e7d2a4a539c3b1b1f6f0c2d11aaaa",
			want: "does not end with a UUID",
		},
		{name: "an invalid digit", in: id[:len(id)-1] + "g", want: "does not end with a UUID"},
		{
			name: "a misplaced hyphen",
			in:   "vmware-cloud-director://urn:vcloud:vm:5f0c8d4-e7d2a-4a53-9c3b-1b1f6f0c2d11",
			want: "does not end with a UUID",
		},
		{name: "surrounding white space", in: " " + id, want: "does not start with"},
		{name: "a trailing line", in: id + "\n", want: "does not end with a UUID"},
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
