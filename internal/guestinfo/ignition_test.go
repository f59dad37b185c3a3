// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
)

func TestWhetherIgnitionConfiguresTheNetwork(t *testing.T) {
	tests := []struct {
		name, config string
		want         bool
	}{
		{"not by kubeadm's files", `{"storage":{"files":[{"path":"/etc/kubeadm.yml","contents":{"source":"data:,a"}}]}}`, false},
		{"by a file of systemd-networkd", `{"storage":{"files":[{"path":"/etc/systemd/network/10.network"}]}}`, true},
		{"by units of version 2", `{"networkd":{"units":[{"name":"10.network"}]}}`, true},
		{
			"by a unit that reads the metadata",
			`{"systemd":{"units":[{"contents":"ExecStart=vmtoolsd --cmd 'info-get guestinfo.metadata'"}]}}`,
			true,
		},
		{
			"by a script that reads the metadata",
			`{"storage":{"files":[{"path":"/opt/net","contents":{"source":"data:,info-get%20guestinfo.metadata"}}]}}`,
			true,
		},
		{
			"by a script in base64 that reads the metadata",
			`{"storage":{"files":[{"path":"/opt/net","contents":{"source":"data:;base64,Z3Vlc3RpbmZvLm1ldGFkYXRh"}}]}}`,
			true,
		},
		{"perhaps by a configuration from elsewhere", `{"ignition":{"config":{"merge":[{"source":"https://x"}]}}}`, true},
		{"perhaps by what is no JSON", `variant: flatcar`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(guestinfo.ConfiguresNetwork([]byte(tt.config))).To(Equal(tt.want))
		})
	}
}
