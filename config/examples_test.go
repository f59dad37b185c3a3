// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// example matches a YAML block in a page, which may be indented.
var example = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```$")

// bases contain the required fields that examples in pages omit.
var bases = map[string]string{
	"VCDCluster":             clusterYAML,
	"VCDClusterTemplate":     clusterTemplateYAML,
	"VCDMachine":             machineYAML,
	"VCDMachineTemplate":     machineTemplateYAML,
	"VCDIdentity":            identityYAML,
	"VCDClusterIdentity":     clusterIdentityYAML,
	"VCDFailureDomain":       failureDomainYAML,
	"VCDDeploymentZone":      deploymentZoneYAML,
	"VCDRemediation":         remediationYAML,
	"VCDRemediationTemplate": remediationTemplateYAML,
}

// TestExamplesInPagesAreAdmitted checks that the API server admits each object of this API in the pages.
func TestExamplesInPagesAreAdmitted(t *testing.T) {
	g := NewWithT(t)
	crds := loadCRDs(t)
	found := 0
	g.Expect(filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		for _, block := range example.FindAllStringSubmatch(string(page), -1) {
			for text := range strings.SplitSeq(block[1], "---\n") {
				if !strings.Contains(text, "apiVersion: "+infrav1.GroupVersion.String()) {
					continue
				}
				shown := parse(t, text)
				if shown["apiVersion"] != infrav1.GroupVersion.String() {
					continue // It only refers to an object of this API.
				}
				kind, _ := shown["kind"].(string)
				g.Expect(bases).To(HaveKey(kind), "%s: %s", path, text)
				object := parse(t, bases[kind], text)
				g.Expect(crds[kind].admit(t, object, nil)).To(BeEmpty(), "%s: %s", path, text)
				found++
			}
		}
		return nil
	})).To(Succeed())
	g.Expect(found).To(BeNumerically(">", 5))
}
