// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestSelectorMatchesNames(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, version, filled string
		matches, others                []string
	}{
		{
			name:    "the version is written without its v",
			pattern: "ubuntu-kube-v{kubernetesVersion}",
			version: "v1.36.3",
			filled:  "ubuntu-kube-v1.36.3",
			matches: []string{"ubuntu-kube-v1.36.3"},
			others:  []string{"ubuntu-kube-v1.36.30", "ubuntu-kube-v1x36.3", "old-ubuntu-kube-v1.36.3"},
		},
		{
			name:    "the version does not end within a number",
			pattern: "ubuntu-*-v{kubernetesVersion}*",
			version: "v1.36.3+vendor.1",
			filled:  "ubuntu-*-v1.36.3*",
			matches: []string{"ubuntu-2404-v1.36.3", "ubuntu-2404-v1.36.3-b7", "ubuntu-2404-v1.36.3+vendor.2"},
			others:  []string{"ubuntu-2404-v1.36.30", "ubuntu-2404-v1.36.31-b7"},
		},
		{
			name:    "a question mark matches one character",
			pattern: "flatcar-?.{kubernetesVersion}",
			version: "v1.36.3",
			filled:  "flatcar-?.1.36.3",
			matches: []string{"flatcar-4.1.36.3"},
			others:  []string{"flatcar-42.1.36.3", "flatcar-4-1.36.3"},
		},
		{
			name:    "any version matches if none is known",
			pattern: "ubuntu-v{kubernetesVersion}-*",
			filled:  "ubuntu-v*-*",
			matches: []string{"ubuntu-v1.36.3-b7", "ubuntu-v1.37.0-rc.1-b7"},
			others:  []string{"ubuntu-vanilla-b7"},
		},
		{
			name:    "every name matches without a pattern",
			version: "v1.36.3",
			matches: []string{"anything"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			query := checks.TemplateQuery(&infrav1.TemplateSelector{NamePattern: tt.pattern}, "images", tt.version)

			g.Expect(query.Pattern).To(Equal(tt.filled))
			for _, name := range tt.matches {
				g.Expect(query.Name.MatchString(name)).To(BeTrue(), name)
			}
			for _, name := range tt.others {
				g.Expect(query.Name.MatchString(name)).To(BeFalse(), name)
			}
		})
	}
}

func TestSelectorMatchesMetadata(t *testing.T) {
	g := NewWithT(t)
	selector := &infrav1.TemplateSelector{
		MatchMetadata:        []infrav1.TemplateMetadata{{Key: "role", Value: "node"}},
		KubernetesVersionKey: "kubernetes",
	}
	role := vcd.TextMetadata{Key: "role", Value: "node"}

	g.Expect(checks.TemplateQuery(selector, "images", "v1.36.3").Metadata).To(
		Equal([]vcd.TextMetadata{role, {Key: "kubernetes", Value: "v1.36.3"}}))
	g.Expect(checks.TemplateQuery(selector, "images", "").Metadata).To(Equal([]vcd.TextMetadata{role}))
}
