package webhooks

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const notYetPage = "../../docs/reference/not-yet.md"

var update = flag.Bool("update", false, "write docs/reference/not-yet.md")

// TestNotYetPage compares the page of the documentation with the table.
func TestNotYetPage(t *testing.T) {
	g := NewWithT(t)
	var page strings.Builder
	page.WriteString(`# What the API has words for and this release does not do yet

The API is designed at once, so that objects need not change when a release learns more. What a release does not do is refused at
admission, in these words. This page is made from the table that refuses: ` + "`go test ./internal/webhooks -run NotYet -update`" + ` writes it.

| Field | Not implemented yet | Instead |
|---|---|---|
`)
	addRows(&page, "VCDMachine.spec", machineFeatures)

	if *update {
		g.Expect(os.WriteFile(notYetPage, []byte(page.String()), 0o644)).To(Succeed())
	}
	written, err := os.ReadFile(notYetPage)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(string(written)).To(Equal(page.String()), "run: go test ./internal/webhooks -run NotYet -update")
}

func addRows[S any](page *strings.Builder, spec string, features []feature[S]) {
	for _, f := range features {
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", strings.TrimSuffix(spec+"."+f.path, "."), f.what, f.instead)
	}
}
