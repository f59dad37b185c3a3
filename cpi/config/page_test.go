package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const pagePath = "../../docs/reference/ccm-config.md"

var update = flag.Bool("update", false, "write docs/reference/ccm-config.md")

// TestPage holds the page for people against the table of keys.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	var page strings.Builder
	page.WriteString(`# Configuration of the cloud controller manager

One YAML file, ` + "`--cloud-config`" + `. It is strict: a key that is not in this table, or there twice, is an error, and all errors are
said at once with the key, its line and what would be right; ` + "`cpi --validate-config`" + ` says them without a cluster. A file for VMware's
CPI 1.6.1 works as it is: its keys have a dot in the last column. Those that do nothing any more are warned about.
This page is made from the table that reads the file: ` + "`go test ./cpi/config -run Page -update`" + ` writes it.

Credentials are files of a mounted Secret (` + "`--credentials`" + `): ` + "`refreshToken`" + `, an API token, which wins, or ` + "`username`" + ` with
` + "`password`" + `; the user name may be of the form ` + "`org/user`" + `. They are read again when they change. The proxy is taken from the
environment variables HTTPS_PROXY and NO_PROXY.

| Key | Kind | Without it | Meaning | 1.6.1 |
|---|---|---|---|---|
`)
	for _, k := range keys() {
		if k.set == nil {
			continue
		}
		doc, legacy := k.doc, ""
		if k.dead != "" {
			doc = "Does nothing: " + k.dead + "."
		}
		if k.legacy {
			legacy = "•"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", k.path, k.kind, k.fallback, doc, legacy)
	}

	if *update {
		g.Expect(os.WriteFile(pagePath, []byte(page.String()), 0o644)).To(Succeed())
	}
	written, err := os.ReadFile(pagePath)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(string(written)).To(Equal(page.String()), "run: go test ./cpi/config -run Page -update")
}

func TestEveryKeyIsExplained(t *testing.T) {
	g := NewWithT(t)
	for _, k := range keys() {
		if k.set != nil {
			g.Expect(k.kind).NotTo(BeEmpty(), k.path)
			g.Expect(k.doc+k.dead).NotTo(BeEmpty(), k.path)
		}
	}
}
