// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// written writes the pages of an API in which two kinds share a type, and returns the generated part of a page.
func written(t *testing.T, types, file string) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	for _, p := range pages {
		text := "# Title\n\nBy hand.\n" + heading + "\nfrom an earlier run\n"
		g.Expect(os.WriteFile(filepath.Join(folder, p.file), []byte(text), 0o600)).To(Succeed())
	}
	source := filepath.Join(folder, "types.json")
	g.Expect(os.WriteFile(source, []byte(types), 0o600)).To(Succeed())

	g.Expect(run(source, folder)).To(Succeed())

	content, err := os.ReadFile(filepath.Join(folder, file))
	g.Expect(err).NotTo(HaveOccurred())
	byHand, generated, found := strings.Cut(string(content), heading)
	g.Expect(found).To(BeTrue())
	g.Expect(byHand).To(Equal("# Title\n\nBy hand.\n"))
	return generated
}

const shared = `[
{"name": "VCDCluster", "doc": "VCDCluster is a cluster.", "fields": [
 {"name": "spec", "type": "[Disk](#disk)", "markers": {"required": [{}], "kubebuilder:validation:XValidation": [{"Message": "of the type"}, {"Message": "is immutable", "FieldPath": ".size"}]}}, null], "values": [null]},
{"name": "VCDMachine", "doc": "VCDMachine is a machine.", "fields": [{"name": "disk", "type": "[Disk](#disk)"}, null], "values": [null]},
{"name": "Disk", "doc": "Disk is a {disk}\nof <a> VM.", "fields": [
 {"name": "size", "doc": "size of it.", "type": "integer", "default": "3", "markers": {"kubebuilder:validation:Minimum": [1], "kubebuilder:validation:Maximum": [9], "kubebuilder:validation:Pattern": ["^\\d$"]}}, null],
 "values": [null], "markers": {"kubebuilder:validation:XValidation": [{"Message": "of the type"}]}},
{"name": "VCDIdentity", "doc": "VCDIdentity is one.", "alias": "string", "fields": [null], "values": [{"name": "A", "doc": "KindA is the first."}, null],
 "markers": {"kubebuilder:validation:Enum": [["A"]]}},
null]`

func TestATypeIsOnThePageOfTheFirstKindThatUsesIt(t *testing.T) {
	g := NewWithT(t)
	cluster := written(t, shared, "vcdcluster.md")
	g.Expect(cluster).To(ContainSubstring("### Disk\n"))
	g.Expect(cluster).To(ContainSubstring("is a \\{disk\\} of \\<a> VM.\n"))
	g.Expect(cluster).NotTo(ContainSubstring("earlier run"))

	machine := written(t, shared, "vcdmachine.md")
	g.Expect(machine).NotTo(ContainSubstring("### Disk"))
	g.Expect(machine).To(ContainSubstring("- **`disk`** ([Disk](vcdcluster.md#disk))\n"))
}

func TestAFieldHasItsLimitsAndRules(t *testing.T) {
	g := NewWithT(t)
	cluster := written(t, shared, "vcdcluster.md")

	g.Expect(cluster).To(ContainSubstring(
		"- **`size`** (integer, default `3`, 1 to 9)  \n  size of it.  \n  Validation: pattern `^\\d$`.\n"))
	// The rule of the type is in the section of the type only.
	g.Expect(cluster).To(ContainSubstring("- **`spec`** ([Disk](#disk), required)  \n  Validation: `size` is immutable.\n"))
	g.Expect(strings.Count(cluster, "of the type")).To(Equal(1))
}

func TestSeveralRulesFormAList(t *testing.T) {
	g := NewWithT(t)
	types := strings.Replace(shared, `{"Message": "is immutable", "FieldPath": ".size"}`,
		`{"Message": "is first"}, {"Message": "is second"}, {"Message": "is third"}`, 1)

	g.Expect(written(t, types, "vcdcluster.md")).To(ContainSubstring(
		"required)  \n  Validation:\n  - is first\n  - is second\n  - is third\n"))
}

func TestTheValuesOfATypeFormAList(t *testing.T) {
	g := NewWithT(t)
	identity := written(t, shared, "vcdidentity.md")

	g.Expect(identity).To(ContainSubstring("- `A`: the first.\n"))
	g.Expect(identity).NotTo(ContainSubstring("Validation"))
}
