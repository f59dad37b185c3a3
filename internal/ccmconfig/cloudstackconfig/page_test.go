// SPDX-License-Identifier: Apache-2.0

package cloudstackconfig

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
	pagePath    = "../../../docs/reference/cloudstack-config.md"
	pageCommand = "go test ./internal/ccmconfig/cloudstackconfig -run Page -update"
)

var update = flag.Bool("update", false, "write docs/reference/cloudstack-config.md")

// sections are the headers of sections in their usual spelling.
var sections = map[string]string{"global": "[Global]", "loadbalancer": "[LoadBalancer]"}

// TestPage compares the reference page with the schema.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	docs := configpage.Comments(t, "config.go")
	section := ""
	var page strings.Builder
	page.WriteString(`# Configuration of the cloud controller manager on CloudStack

` + "```ini" + `
[Global]
api-url    = https://cloud.example.com/client/api
api-key    = AbC...
secret-key = XyZ...
project-id = 7f3a0c1e-5d0c-4a43-9a37-2f1f5f8a9d11

[LoadBalancer]
network = nodes
` + "```" + `

The configuration is a file, set with ` + "`--cloud-config`" + `. It is key ` + "`cloud-config` of Secret `cloudstack-secret`" + ` in the manifest. A file of CloudStack Kubernetes Provider 1.2.0 works without
changes: its keys have a dot in the last column. A key that is unknown or set twice is an error. The program reports all errors together, each with its key,
line and remedy. ` + "`cpi --cloud-provider=external-cloudstack --cloud-config=cloud-config --validate-config`" + ` reports them without a cluster.
Names of sections and keys may be in upper case. A value may be in double quotes. In other values, ` + "`;` and `#`" + ` begin a comment. The program reads the file at the start,
and changes of ` + "`api-key` and `secret-key`" + ` without a restart. The environment variables HTTPS_PROXY and NO_PROXY set the proxy. This page is generated from the schema: ` + "`" + pageCommand + "`" + `.
`)
	for _, k := range ccmconfig.Keys(&Config{}) {
		tag := k.Field.Tag
		doc := docs[k.Owner.Name()+"."+k.Field.Name]
		legacy := ""
		at, name, _ := strings.Cut(k.Path, ".")
		if at != section {
			section = at
			fmt.Fprintf(&page, "\n## %s\n\n| Key | Kind | Default | Meaning | 1.2.0 |\n|---|---|---|---|---|\n", sections[at])
		}
		if tag.Get("legacy") != "" {
			legacy = "•"
		}
		if alias := tag.Get("alias"); alias != "" {
			name = alias
		}
		g.Expect(doc).NotTo(BeEmpty(), k.Path)
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", name, configpage.Code(k.Kind),
			configpage.Code(tag.Get("fallback")+tag.Get("default")), doc, legacy)
	}

	configpage.Hold(t, pagePath, page.String(), pageCommand, *update)
}
