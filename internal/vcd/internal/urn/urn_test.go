// SPDX-License-Identifier: Apache-2.0

package urn

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestURNOf(t *testing.T) {
	const id = "22222222-2222-4222-8222-222222222222"
	tests := []struct {
		name, kind, ref, want string
	}{
		{name: "a URN is unchanged", kind: VM, ref: "urn:vcloud:vm:" + id, want: "urn:vcloud:vm:" + id},
		{name: "a bare UUID gets the kind", kind: VM, ref: strings.ToUpper(id), want: "urn:vcloud:vm:" + id},
		{name: "an href contains its kind", ref: "https://other.example/api/vApp/vapp-" + id, want: "urn:vcloud:vapp:" + id},
		{name: "an href to a template's VM", ref: "https://x/api/vAppTemplate/vm-" + id, want: "urn:vcloud:vm:" + id},
		{name: "an href to an administrator's view", ref: "https://x/api/admin/vdc/" + id, want: "urn:vcloud:vdc:" + id},
		{
			name: "a storage profile is not a VDC",
			ref:  "https://x/api/vdcStorageProfile/" + id,
			want: "urn:vcloud:vdcstorageProfile:" + id,
		},
		{name: "an empty value is unchanged", kind: VM},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Of(tt.kind, tt.ref)).To(Equal(tt.want))
		})
	}
}
