// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons/chart"
)

// TestChartValuesMatchTheDefaultsOfTheManifests renders the chart without Helm; test/addons renders and applies it.
func TestChartValuesMatchTheDefaultsOfTheManifests(t *testing.T) {
	g := NewWithT(t)
	files, err := chart.Files("registry.example.com/mirror/", "v2.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	var values struct {
		Cloud     string
		Image     struct{ Repository, Tag, Digest string }
		Replicas  int
		Resources map[string]map[string]string
	}

	g.Expect(yaml.Unmarshal(contentOf(g, files, "values.yaml"), &values)).To(Succeed())

	g.Expect(values.Cloud).To(Equal(addons.VCD().Provider))
	g.Expect(values.Image.Repository).To(Equal("registry.example.com/mirror/" + addons.Repository))
	g.Expect(values.Image.Tag + values.Image.Digest).To(BeEmpty())
	g.Expect(values.Resources).To(HaveKeyWithValue("limits", HaveKey("memory")))
	g.Expect(values.Resources).To(HaveKeyWithValue("requests", And(HaveKey("memory"), HaveKey("cpu"))))
	g.Expect(string(contentOf(g, files, "Chart.yaml"))).To(And(ContainSubstring("version: 2.0.0\n"),
		ContainSubstring("appVersion: v2.0.0\n")))
}

func TestNoPlaceholderRemains(t *testing.T) {
	g := NewWithT(t)
	files, err := chart.Files("", "v2.0.0")
	g.Expect(err).NotTo(HaveOccurred())

	for _, f := range files {
		g.Expect(strings.ToLower(string(f.Content))).NotTo(Or(ContainSubstring("mark"),
			ContainSubstring("chart.invalid"), ContainSubstring("dgv4d")), f.Name)
	}
}

func TestPackagingIsDeterministic(t *testing.T) {
	g := NewWithT(t)
	files, err := chart.Files("", "v2.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	var first, second bytes.Buffer

	g.Expect(chart.Write(&first, files, time.Unix(1, 0))).To(Succeed())
	g.Expect(chart.Write(&second, files, time.Unix(1, 0))).To(Succeed())

	g.Expect(first.Bytes()).To(Equal(second.Bytes()))
}

func contentOf(g *WithT, files []addons.File, name string) []byte {
	for _, f := range files {
		if f.Name == name {
			return f.Content
		}
	}
	g.Expect(name).To(BeEmpty(), "there is no such file")
	return nil
}
