// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

func TestTheKubernetesVersionOfAnImage(t *testing.T) {
	of := func(key, preset, value string) *types.ProductSection {
		p := &types.Property{Key: key, DefaultValue: preset}
		if value != "" {
			p.Value = &types.Value{Value: value}
		}
		return &types.ProductSection{Property: []*types.Property{nil, p}}
	}
	for _, tt := range []struct {
		name    string
		section *types.ProductSection
		want    string
	}{
		{"ubuntu-2404-kube-v1.36.3", nil, "v1.36.3"},
		{"Ubuntu 20.04 and Kubernetes v1.27.5+vmware.1", nil, "v1.27.5"},
		{"ubuntu-2004-k8s_1.30.0-1", nil, "v1.30.0"},
		{"photon-5.0.1", nil, ""},
		{"ubuntu", nil, ""},
		{"ubuntu-kube-v1.36.3", of("KUBERNETES_SEMVER", "v1.35.4", ""), "v1.35.4"},
		{"ubuntu-kube-v1.36.3", of("KUBERNETES_SEMVER", "v1.35.4", "v1.34.1+vmware.1"), "v1.34.1+vmware.1"},
		{"ubuntu-kube-v1.36.3", of("DISTRO_NAME", "ubuntu", ""), "v1.36.3"},
	} {
		g := NewWithT(t)
		g.Expect(kubernetesOf(tt.name, tt.section)).To(Equal(tt.want), tt.name)
	}
}

func TestVersionsMatchDespiteBuilderSuffixes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(SameKubernetes("v1.34.1+vmware.1", "v1.34.1")).To(BeTrue())
	g.Expect(SameKubernetes("1.34.1", "v1.34.1")).To(BeTrue())
	g.Expect(SameKubernetes("v1.34.1", "v1.34.2")).To(BeFalse())
}
