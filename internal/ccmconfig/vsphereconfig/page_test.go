// SPDX-License-Identifier: Apache-2.0

package vsphereconfig

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/configpage"
)

const (
	pagePath    = "../../../docs/reference/vsphere-config.md"
	pageCommand = "go test ./internal/ccmconfig/vsphereconfig -run Page -update"
)

var update = flag.Bool("update", false, "write docs/reference/vsphere-config.md")

// TestPage compares the reference page with the schema.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	docs := configpage.Comments(t, "config.go")
	var page strings.Builder
	page.WriteString(`# Configuration of the cloud controller manager on vSphere

` + "```yaml" + `
global:
  secretName: cpi-global-secret
  secretNamespace: kube-system
vcenter:
  vc.example.com:
    datacenters: [DC0]
    caFile: /etc/cloud/ca.pem
labels:
  zone: k8s-zone
  region: k8s-region
` + "```" + `

The configuration is a file, set with ` + "`--cloud-config`" + `, in YAML or in the INI format of the vSphere CPI. Without a file, environment variables set everything.
A file of the vSphere CPI works without changes. A key with a dot in the last column is new. A key that is unknown or set twice is an error. The program reports
all errors together, each with its key, line and remedy. ` + "`cpi --cloud-provider=vsphere --cloud-config=vsphere.conf --validate-config`" + ` reports them without a
cluster. The program reads the file at the start, and changed credentials without a restart. This page is generated from the schema:
` + "`" + pageCommand + "`" + `.

In INI, ` + "`[Global]`, `[Labels]` and `[Nodes]`" + ` are sections, ` + "`[VirtualCenter \"vc.example.com\"]`" + ` is ` + "`vcenter.vc.example.com`" + `, and lists are separated by commas. A
variable takes precedence over the file.

| Key | in INI | Variable | Kind | Default | Meaning | new |
|---|---|---|---|---|---|---|
`)
	for _, k := range ccmconfig.Keys(&Config{}) {
		tag := k.Field.Tag
		doc := docs[k.Owner.Name()+"."+k.Field.Name]
		ours := ""
		name := k.Path[strings.LastIndex(k.Path, ".")+1:]
		if alias := tag.Get("alias"); alias != "" {
			name = alias
		}
		if why := tag.Get("ignored"); why != "" {
			doc = "No effect: " + why + "."
		}
		if tag.Get("ours") != "" {
			ours = "•"
		}
		g.Expect(doc).NotTo(BeEmpty(), k.Path)
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s | %s | %s |\n", k.Path, name, variable(k.Path, tag.Get("env")), configpage.Code(k.Kind),
			configpage.Code(tag.Get("fallback")+tag.Get("default")), doc, ours)
	}
	page.WriteString(`
Each variable ` + "`VSPHERE_VCENTER_<id>`" + ` adds a vCenter with that host; ` + "`VCENTER_<id>_…`" + ` has the rest.

## Credentials

For each vCenter the first that has any wins:

1. the Secret ` + "`secretName`" + `, which the controller reads from Kubernetes once a minute at most;
2. the files in ` + "`global.secretsDirectory`" + `, a mounted Secret;
3. ` + "`user` and `password`" + ` of the configuration.

| keys of the Secret | meaning |
|---|---|
| ` + "`<host>.username`, `<host>.password`" + ` | a user, or a certificate and its key in PEM format, which log in by a token of vCenter's |
| ` + "`<host>.vc-session-manager-url`, `<host>.vc-session-manager-token`" + ` | the session that a service shares; without a token, the pod's own. It reads no tags |
| ` + "`server_<x>`, `username_<x>`, `password_<x>`" + ` | the same for a host that cannot be part of a key, such as an IPv6 address |

Credentials that vCenter refuses are not tried again for a quarter of an hour, or until they change: vCenter locks accounts.
`)

	configpage.Hold(t, pagePath, page.String(), pageCommand, *update)
}

// variable returns the variable of a key.
func variable(path, env string) string {
	if env != "" {
		return "`" + env + "`"
	}
	name, ok := strings.CutPrefix(path, "vcenter.<name>.")
	for _, suffix := range slices.Sorted(maps.Keys(variables)) {
		if ok && variables[suffix] == name {
			return "`VCENTER_<id>_" + suffix + "`"
		}
	}
	return ""
}
