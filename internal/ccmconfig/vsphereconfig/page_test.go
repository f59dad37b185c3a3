package vsphereconfig

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

const (
	pagePath    = "../../../docs/reference/vsphere-config.md"
	pageCommand = "go test ./internal/ccmconfig/vsphereconfig -run Page -update"
)

var update = flag.Bool("update", false, "write docs/reference/vsphere-config.md")

// TestPage compares the reference page with the schema.
func TestPage(t *testing.T) {
	g := NewWithT(t)
	docs := comments(g)
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

One file, ` + "`--cloud-config`" + `, in YAML, or in INI as the vSphere CPI had it, or none: then variables of the environment have all of it. A file of the vSphere
CPI works as it is; a key with a dot in the last column is new. It is strict: a key that is not in this table, or is set twice, is an error, and all errors are
reported at once with the key, its line and the remedy; ` + "`cpi --cloud-provider=vsphere --cloud-config=vsphere.conf --validate-config`" + ` reports them without a
cluster. The file is read at the start; credentials in Secrets and files are read again when they change. This page is generated from the schema:
` + "`" + pageCommand + "`" + ` writes it.

In INI, ` + "`[Global]`, `[Labels]` and `[Nodes]`" + ` are sections, ` + "`[VirtualCenter \"vc.example.com\"]`" + ` is ` + "`vcenter.vc.example.com`" + `, and lists are separated by commas. A
variable wins over the file.

| Key | in INI | Variable | Kind | Without it | Meaning | new |
|---|---|---|---|---|---|---|
`)
	for _, k := range ccmconfig.Keys(&Config{}) {
		tag, doc, ours := k.Field.Tag, docs[k.Owner.Name()+"."+k.Field.Name], ""
		name := k.Path[strings.LastIndex(k.Path, ".")+1:]
		if alias := tag.Get("alias"); alias != "" {
			name = alias
		}
		if why := tag.Get("ignored"); why != "" {
			doc = "Does nothing: " + why + "."
		}
		if tag.Get("ours") != "" {
			ours = "•"
		}
		g.Expect(doc).NotTo(BeEmpty(), k.Path)
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s | %s | %s |\n", k.Path, name, variable(k.Path, tag.Get("env")), code(k.Kind),
			code(tag.Get("fallback")+tag.Get("default")), doc, ours)
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

	if *update {
		g.Expect(os.WriteFile(pagePath, []byte(page.String()), 0o644)).To(Succeed())
	}
	written, err := os.ReadFile(pagePath)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(string(written)).To(Equal(page.String()), "run: "+pageCommand)
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

// code makes code of what is quoted: a tag can hold no back quotes.
func code(s string) string { return strings.ReplaceAll(s, "'", "`") }

// comments returns the comments of the fields of the schema, each in one line, by type and field.
func comments(g *WithT) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
	return all
}
