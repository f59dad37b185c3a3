// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	dropped       = "—"
	capvcdModule  = "github.com/vmware/cluster-api-provider-cloud-director@v1.3.2"
	capvcdVersion = "v1beta2"
)

// capvcdCredentials is the v1beta4 field for the credentials in an object of CAPVCD.
const capvcdCredentials = "capvcdCredentials"

func TestCAPVCDCredentialsCanOnlyBeRemoved(t *testing.T) {
	const one = `{username: admin, password: one}`
	tests := []struct {
		name          string
		before, after string
		refused       bool
	}{
		{name: "they are unchanged", before: one, after: one},
		{name: "they are removed", before: one},
		{name: "they are set", after: one, refused: true},
		{name: "they are changed", before: one, after: `{username: admin, password: two}`, refused: true},
		{name: "some of them are removed", before: one, after: `{username: admin}`, refused: true},
	}
	for kind, base := range map[string]string{"VCDCluster": clusterYAML, "VCDClusterTemplate": clusterTemplateYAML} {
		c := loadCRDs(t)[kind]
		object := func(t *testing.T, value string) map[string]any {
			t.Helper()
			if value == "" {
				value = "null"
			}
			change := `{spec: {` + capvcdCredentials + `: ` + value + `}}`
			if kind == "VCDClusterTemplate" {
				change = `{spec: {template: ` + change + `}}`
			}
			return parse(t, base, change)
		}
		for _, tt := range tests {
			t.Run(kind+": "+tt.name, func(t *testing.T) {
				g := NewWithT(t)

				errs := c.admit(t, object(t, tt.after), object(t, tt.before))

				if tt.refused {
					g.Expect(errs).ToNot(BeEmpty())
				} else {
					g.Expect(errs).To(BeEmpty())
				}
			})
		}
		t.Run(kind+": a new object has them", func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(c.admit(t, object(t, one), nil)).ToNot(BeEmpty())
			g.Expect(c.admit(t, object(t, ""), nil)).To(BeEmpty())
		})
	}
}

// home is a row of the table of CAPVCD's fields: the v1beta4 field and a remark.
type home struct {
	path, remark string
}

// fieldTable reads docs/reference/capvcd-fields.md. The keys are the kind and the CAPVCD field.
func fieldTable(t *testing.T) map[string]map[string]home {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile("../docs/reference/capvcd-fields.md")
	g.Expect(err).ToNot(HaveOccurred())
	heading := regexp.MustCompile(`^## (VCD\w+)$`)
	row := regexp.MustCompile("^\\| `([^`]+)` \\| `?([^`|]+?)`? \\|(.*)\\|$")
	table := map[string]map[string]home{}
	kind := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if match := heading.FindStringSubmatch(line); match != nil {
			kind = match[1]
			table[kind] = map[string]home{}
		}
		if match := row.FindStringSubmatch(line); match != nil && kind != "" {
			g.Expect(table[kind]).ToNot(HaveKey(match[1]), "twice in the table")
			table[kind][match[1]] = home{path: match[2], remark: strings.TrimSpace(match[3])}
		}
	}
	return table
}

func TestTargetsOfCAPVCDFieldsExist(t *testing.T) {
	crds := loadCRDs(t)
	for kind, rows := range fieldTable(t) {
		for name, home := range rows {
			t.Run(kind+"."+name, func(t *testing.T) {
				g := NewWithT(t)
				if home.path == dropped {
					g.Expect(home.remark).ToNot(BeEmpty(), "a dropped field needs a reason")
					return
				}
				ourKind, path, _ := strings.Cut(home.path, ".")
				g.Expect(crds).To(HaveKey(ourKind))
				g.Expect(fieldAt(&crds[ourKind].definition.Spec, path)).ToNot(BeNil(), "no field %s", home.path)
			})
		}
	}
}

func TestEveryCAPVCDFieldHasATarget(t *testing.T) {
	table := fieldTable(t)
	crds := loadCRDs(t)
	for kind, object := range map[string]string{
		"VCDCluster":         "",
		"VCDMachine":         "",
		"VCDClusterTemplate": "VCDCluster",
		"VCDMachineTemplate": "VCDMachine",
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			fields := capvcdFields(t, "crd/bases", kind, capvcdVersion)
			known := table[kind]
			if object != "" {
				known = templateHomes(known, table[object], kind, object)
			}
			for name := range known {
				g.Expect(fields).To(HaveKey(name), "CAPVCD has no such field")
			}
			for name := range fields {
				g.Expect(known).To(HaveKey(name), "no target")
				ourKind, path, _ := strings.Cut(known[name].path, ".")
				g.Expect(ourKind == dropped || fieldAt(&crds[ourKind].definition.Spec, path) != nil).To(BeTrue(),
					known[name].path)
			}
		})
	}
}

// TestCAPVCDVersionsHaveTheirFields compares the served CAPVCD versions with VMware's own CRDs.
func TestCAPVCDVersionsHaveTheirFields(t *testing.T) {
	dir := capvcdCRDs(t)
	for kind, versions := range map[string][]string{
		"VCDCluster":         {"v1beta1", "v1beta2"},
		"VCDMachine":         {"v1beta1", "v1beta2"},
		"VCDMachineTemplate": {"v1beta1", "v1beta2"},
		"VCDClusterTemplate": {"v1beta2"},
	} {
		for _, version := range versions {
			t.Run(kind+" "+version, func(t *testing.T) {
				NewWithT(t).Expect(capvcdFields(t, "crd/bases", kind, version)).
					To(Equal(capvcdFields(t, dir, kind, version)))
			})
		}
	}
}

// templateHomes returns the rows of a template, including those for the spec of its objects.
func templateHomes(rows, objectRows map[string]home, kind, object string) map[string]home {
	all := map[string]home{}
	for name, home := range rows {
		all[name] = home
	}
	for name, h := range objectRows {
		if strings.HasPrefix(name, "spec.") {
			all["spec.template."+name] = home{
				path: strings.Replace(h.path, object+".spec.",
					kind+".spec.template.spec.", 1),
				remark: h.remark,
			}
		}
	}
	return all
}

// capvcdCRDs returns the folder with VMware's CRDs. It skips the test if their module is not in the module cache.
func capvcdCRDs(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skipf("the module cache cannot be found: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), capvcdModule, "config", "crd", "bases")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s is not in the module cache: run `go mod download %s`", capvcdModule, capvcdModule)
	}
	return dir
}

// capvcdFields lists the leaf fields in spec and status of a CRD version. The values contain type, format, default, and
// whether the field is required.
func capvcdFields(t *testing.T, dir, kind, wanted string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join(dir, "infrastructure.cluster.x-k8s.io_"+strings.ToLower(kind)+"s.yaml"))
	g.Expect(err).ToNot(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.Unmarshal(data, definition)).To(Succeed())
	fields := map[string]string{}
	for _, version := range definition.Spec.Versions {
		if version.Name != wanted {
			continue
		}
		for _, part := range []string{"spec", "status"} {
			if props, ok := version.Schema.OpenAPIV3Schema.Properties[part]; ok {
				addLeaves(fields, part, &props, false)
			}
		}
	}
	g.Expect(fields).ToNot(BeEmpty())
	return fields
}

func addLeaves(fields map[string]string, path string, props *apiextensionsv1.JSONSchemaProps, required bool) {
	if props.Items != nil {
		addLeaves(fields, path+"[]", props.Items.Schema, required)
		return
	}
	if len(props.Properties) == 0 {
		value := ""
		if props.Default != nil {
			value = string(props.Default.Raw)
		}
		fields[path] = fmt.Sprintf("%s, format %q, default %q, required %t", props.Type, props.Format, value, required)
		return
	}
	for name, child := range props.Properties {
		addLeaves(fields, path+"."+name, &child, slices.Contains(props.Required, name))
	}
}

// fieldAt returns the schema of a field, such as spec.networks[].name.
func fieldAt(spec *apiextensionsv1.CustomResourceDefinitionSpec, path string) *apiextensionsv1.JSONSchemaProps {
	props := spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range strings.Split(path, ".") {
		name, isList := strings.CutSuffix(name, "[]")
		child, ok := props.Properties[name]
		if !ok || (isList && child.Items == nil) {
			return nil
		}
		props = &child
		if isList {
			props = child.Items.Schema
		}
	}
	return props
}
