// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
)

const configurationPage = `# vcdsim configuration

This page lists the presets, releases, rights and assumptions of [vcdsim](../get-started/vcdsim.md). It is generated from the code:
` + "`go test ./vcdsim -run ConfigurationPage -update`" + `.

## Presets

Select a preset with ` + "`--preset`" + ` or ` + "`Config.Model`" + `.

| Preset | Objects at the start |
|---|---|
%s
### Fast provisioning

As in VCD, VDCs have fast provisioning by default. Their VMs are linked clones of the template, and their disks cannot grow until
the VM is consolidated. Only the VDC ` + "`acme-vdc-full`" + ` of the preset ` + "`full-clones`" + ` creates full copies, whose disks can grow immediately.
In your own model, set ` + "`VDC.FullClones`" + `.

| client | VDC with fast provisioning | ` + "`acme-vdc-full`" + ` |
|---|---|---|
| this provider, with a disk larger than the template's | consolidates the VM, then grows the disk | grows the disk |
| VMware's CAPVCD, with ` + "`diskSize`" + ` larger than the template's | never succeeds: it retries a rejected change | works |
| VMware's Terraform provider, with ` + "`override_template_disk`" + ` | fails | works |

## Releases

Select a release with ` + "`--api-version`" + ` or ` + "`Config.Version`" + `. A release serves its own API version and all older ones.

| API | Release of VCD |
|---|---|
%s
## Rights

Changes require a right. Reading objects of edge gateways, certificates and IP Spaces requires one, too. Without it, users get 403,
with the message that VCD also returns for missing objects. If a row has several rights, one of them is sufficient.

Users have the rights that are both in their role and in a rights bundle of their organization: the default bundle, or one in
` + "`Org.Bundles`" + `. vApps are visible to their owner, to users they are shared with, and to administrators. Defined entities require a right
of their type, and access.

| Request | Right |
|---|---|
%s
The user ` + "`capvcd`" + ` of the presets has the role ` + "`" + RoleClusterAuthor + "`" + `, and the user ` + "`ccm`" + ` the role ` + "`" + RoleCloudProvider + "`" + `: %s.

## Assumptions

Each behavior that was not verified on a real VCD has a switch in ` + "`Config.Assumptions`" + `. ` + "`DefaultAssumptions()`" + ` returns the defaults.

| Assumption | Default | Meaning |
|---|---|---|
%s`

// assumptionComments returns the comment of each field of Assumptions.
func assumptionComments(g *WithT) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("internal", "cloud", "assumptions.go"), nil, parser.ParseComments)
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Doc != nil && len(f.Names) == 1 {
			text := strings.Join(strings.Fields(f.Doc.Text()), " ")
			out[f.Names[0].Name] = strings.TrimPrefix(text, f.Names[0].Name+": ")
		}
		return true
	})
	return out
}

func TestConfigurationPageIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	var presetRows, releases, needed, assumed strings.Builder
	for _, p := range presets() {
		fmt.Fprintf(&presetRows, "| `%s` | %s |\n", p.Name, p.Description)
	}
	for _, v := range cells.Versions() {
		fmt.Fprintf(&releases, "| `%s` | %s |\n", v, v.Release())
	}
	for _, n := range append(access.Needs, access.NetworkNeeds...) {
		method := n.Method
		if method == "" {
			method = "any but GET"
		}
		fmt.Fprintf(&needed, "| %s `%s…%s` | `%s` |\n", method, n.Under, n.End, strings.Join(n.Rights, "`, `"))
	}
	comments := assumptionComments(g)
	defaults := reflect.ValueOf(cloud.DefaultAssumptions())
	for i := range defaults.NumField() {
		name := defaults.Type().Field(i).Name
		g.Expect(comments).To(HaveKey(name))
		fmt.Fprintf(&assumed, "| `%s` | `%v` | %s |\n", name, defaults.Field(i).Interface(), comments[name])
	}
	rights := "`" + strings.Join(access.RightsOfCloudProvider(), "`, `") + "`"
	page := fmt.Sprintf(configurationPage, presetRows.String(), releases.String(), needed.String(), rights,
		assumed.String())
	file := filepath.Join("..", "docs", "reference", "vcdsim-configuration.md")
	if *update {
		g.Expect(os.WriteFile(file, []byte(page), 0o600)).To(Succeed())
	}
	written, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(written)).To(Equal(page), "run: go test ./vcdsim -run ConfigurationPage -update")
}
