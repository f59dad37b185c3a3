package vcd

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const pagePath = "../../docs/reference/annotations.md"

var update = flag.Bool("update", false, "write docs/reference/annotations.md")

// TestPage holds the page for people against the table of annotations.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	var page strings.Builder
	page.WriteString(`# Annotations of Services

What the cloud controller manager understands on Services of type LoadBalancer, besides their spec. All names begin with
` + "`" + prefix + "`" + `; those that go on with ` + "`avi`" + ` are VMware's and work as they did. Spaces around values and in lists do not matter. What
cannot be done is told once, as an event of type Warning on the Service, and then nothing is built; what stands stays until it is corrected.
This page is made from the table that reads the annotations: ` + "`go test ./cpi/vcd -run Page -update`" + ` writes it.

| Annotation | Value | Example | Meaning |
|---|---|---|---|
`)
	for _, a := range annotations.Table {
		fmt.Fprintf(&page, "| `%s` | %s | `%s` | %s |\n", a.Name, a.Value, a.Example, a.Help)
	}
	page.WriteString(`
Of the spec these count: ` + "`ports`" + ` with ` + "`appProtocol`" + ` (` + "`http`, `https`" + `; all else is plain TCP or UDP), ` + "`loadBalancerIP`, `loadBalancerClass`, `ipFamilies`, " +
		"`externalTrafficPolicy`, `sessionAffinity`, `loadBalancerSourceRanges`" + ` (switched on in the configuration; also as the annotation
` + "`" + service.RangesAnnotation + "`" + `). Ports need node ports. SCTP cannot be balanced.

Annotations of clusters and machines are on [a page of their own](object-annotations.md).
`)

	if *update {
		g.Expect(os.WriteFile(pagePath, []byte(page.String()), 0o644)).To(Succeed())
	}
	written, err := os.ReadFile(pagePath)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(string(written)).To(Equal(page.String()), "run: go test ./cpi/vcd -run Page -update")
}

func TestEveryExampleIsUnderstood(t *testing.T) {
	for _, a := range annotations.Table {
		if a.Parse == nil {
			continue // the core reads it
		}
		t.Run(a.Name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(a.Parse(&settings{}, a.Example)).To(Succeed())
		})
	}
}
