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
		{"a URN is unchanged", VM, "urn:vcloud:vm:" + id, "urn:vcloud:vm:" + id},
		{"a bare UUID gets the kind", VM, strings.ToUpper(id), "urn:vcloud:vm:" + id},
		{"an href contains its kind", "", "https://other.example/api/vApp/vapp-" + id, "urn:vcloud:vapp:" + id},
		{"an href to a template's VM", "", "https://x/api/vAppTemplate/vm-" + id, "urn:vcloud:vm:" + id},
		{"an href to an administrator's view", "", "https://x/api/admin/vdc/" + id, "urn:vcloud:vdc:" + id},
		{
			"a storage profile is not a VDC",
			"",
			"https://x/api/vdcStorageProfile/" + id,
			"urn:vcloud:vdcstorageProfile:" + id,
		},
		{"an empty value is unchanged", VM, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Of(tt.kind, tt.ref)).To(Equal(tt.want))
		})
	}
}
