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

Presets, releases, roles and assumptions of [vcdsim](../get-started/vcdsim.md). This page is made from the code:
` + "`go test ./vcdsim -run ConfigurationPage -update`" + ` writes it.

## Presets

` + "`--preset`" + `, or ` + "`Config.Model`" + `.

| Preset | What exists at the start |
|---|---|
%s
### Fast provisioning

As in VCD, VDCs have fast provisioning unless they are created without it: VMs are linked clones of their template, and a
disk of one cannot grow before the VM is consolidated. Only the VDC ` + "`acme-vdc-full`" + ` of the preset ` + "`full-clones`" + ` makes full
copies, whose disks grow at once. In a model of your own set ` + "`VDC.FullClones`" + `.

| client | VDC with fast provisioning | ` + "`acme-vdc-full`" + ` |
|---|---|---|
| this provider, with a disk larger than the template's | consolidates the VM, then grows the disk | grows the disk |
| VMware's CAPVCD, with ` + "`diskSize`" + ` larger than the template's | waits for ever: it retries a change that is refused | works |
| VMware's Terraform provider, with ` + "`override_template_disk`" + ` | fails | works |

## Releases

` + "`--api-version`" + `, or ` + "`Config.Version`" + `. Each serves the API versions up to its own.

| API | Release of VCD |
|---|---|
%s
## Rights

Changes take a right, and so does reading what belongs to edge gateways, certificates and IP Spaces; a user who lacks it gets 403 in the
words VCD has for what does not exist. Where there are several rights, one of them is enough. A user has what both his role and a rights bundle of
his organization have: the default one, and those in ` + "`Org.Bundles`" + `. vApps are shown to their owner, to whom they are shared with, and to
administrators; defined entities take the right of their type and access.

| Request | Right |
|---|---|
%s
The user ` + "`capvcd`" + ` of the presets has the role ` + "`" + RoleClusterAuthor + "`" + `, the user ` + "`ccm`" + ` has ` + "`" + RoleCloudProvider + "`" + `: %s.

## Assumptions

Behaviour that could not be verified on a real VCD has one switch each: ` + "`Config.Assumptions`" + `, beginning with ` + "`DefaultAssumptions()`" + `.

| Assumption | Default | Meaning |
|---|---|---|
%s`

// assumptionComments are what the code says of each field of Assumptions.
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

func TestConfigurationPageIsWhatTheCodeSays(t *testing.T) {
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
