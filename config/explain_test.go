package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// notYetRow is a row of the page on what a release refuses: a kind, and the path of a field.
var notYetRow = regexp.MustCompile("(?m)^\\| `(\\w+)\\.(\\S+)` \\|")

// What kubectl explain shows of a field that a release refuses says so.
func TestExplainSaysWhatIsRefused(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../docs/reference/not-yet.md")
	g.Expect(err).NotTo(HaveOccurred())
	crds := loadCRDs(t)
	for _, row := range notYetRow.FindAllStringSubmatch(string(page), -1) {
		field := crds[row[1]].definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, name := range strings.Split(row[2], ".") {
			next, ok := field.Properties[name]
			g.Expect(ok).To(BeTrue(), "%s has no field %s", row[1], row[2])
			field = &next
		}
		g.Expect(strings.Join(strings.Fields(field.Description), " ")).
			To(ContainSubstring("not implemented yet"), row[0])
	}
}

// As with the providers for other clouds, kubectl get takes a short name and shows what is not ready.
func TestKindsHaveShortNamesAndColumns(t *testing.T) {
	g := NewWithT(t)
	taken := map[string]string{}
	for kind, c := range loadCRDs(t) {
		names := c.definition.Spec.Names.ShortNames
		g.Expect(names).To(HaveLen(1), kind)
		g.Expect(taken).NotTo(HaveKey(names[0]), kind)
		taken[names[0]] = kind
		var columns []string
		for _, column := range c.definition.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, column.Name)
		}
		g.Expect(columns).To(ContainElement("Age"), kind)
		if !strings.HasSuffix(kind, "Template") {
			g.Expect(columns).To(ContainElements("Ready", "Reason"), kind)
		}
	}
}
