// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/configpage"
)

const (
	pagePath    = "../../../docs/reference/ccm-config.md"
	pageCommand = "go test ./internal/ccmconfig/vcdconfig -run Page -update"
)

var update = flag.Bool("update", false, "write docs/reference/ccm-config.md")

// TestPage compares the reference page with the schema.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	docs := configpage.Comments(t, "config.go")
	var page strings.Builder
	page.WriteString(`# Configuration of the cloud controller manager

The configuration is a YAML file, set with ` + "`--cloud-config`" + `. A key that is unknown or set twice is an error. The program reports all
errors together, each with its key, line and remedy. ` + "`cpi --validate-config`" + ` reports them without a cluster. A file for VMware's CPI
1.6.1 works without changes: its keys have a dot in the last column. A warning lists keys without effect.
This page is generated from the schema: ` + "`" + pageCommand + "`" + `.

Credentials are files of a mounted Secret (` + "`--credentials`" + `): an API token in ` + "`refreshToken`" + `, which takes precedence, or
` + "`username`" + ` and ` + "`password`" + `. The user name may have the form ` + "`org/user`" + `. The program reads changed credentials without a restart.
The environment variables HTTPS_PROXY and NO_PROXY set the proxy.

| Key | Kind | Default | Meaning | 1.6.1 |
|---|---|---|---|---|
`)
	for _, k := range ccmconfig.Keys(&Config{}) {
		tag := k.Field.Tag
		doc := docs[k.Owner.Name()+"."+k.Field.Name]
		legacy := ""
		if why := tag.Get("ignored"); why != "" {
			doc = "No effect: " + configpage.Code(why) + "."
		}
		if (tag.Get("legacy") != "" || tag.Get("ignored") != "") && !strings.Contains(k.Path, "[]") {
			legacy = "•"
		}
		g.Expect(doc).NotTo(BeEmpty(), k.Path)
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", k.Path, configpage.Code(k.Kind),
			configpage.Code(tag.Get("fallback")+tag.Get("default")), doc, legacy)
		if alias := tag.Get("alias"); alias != "" {
			fmt.Fprintf(&page, "| `%s` | %s |  | As `%s`. | • |\n", k.Path[:strings.LastIndex(k.Path, ".")+1]+alias,
				configpage.Code(k.Kind), k.Path)
		}
	}

	configpage.Hold(t, pagePath, page.String(), pageCommand, *update)
}
