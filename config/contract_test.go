// SPDX-License-Identifier: Apache-2.0

package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestContractFields checks the fields that Cluster API's contract v1beta2 reads and writes.
func TestContractFields(t *testing.T) {
	crds := loadCRDs(t)
	tests := []struct{ kind, path, fieldType string }{
		{"VCDCluster", "spec.controlPlaneEndpoint.host", "string"},
		{"VCDCluster", "spec.controlPlaneEndpoint.port", "integer"},
		{"VCDCluster", "status.initialization.provisioned", "boolean"},
		{"VCDCluster", "status.failureDomains[].name", "string"},
		{"VCDCluster", "status.failureDomains[].controlPlane", "boolean"},
		{"VCDCluster", "status.failureDomains[].attributes", "object"},
		{"VCDCluster", "status.conditions[].type", "string"},
		{"VCDClusterTemplate", "spec.template.metadata.labels", "object"},
		{"VCDClusterTemplate", "spec.template.spec", "object"},
		{"VCDMachine", "spec.providerID", "string"},
		{"VCDMachine", "status.initialization.provisioned", "boolean"},
		{"VCDMachine", "status.addresses[].type", "string"},
		{"VCDMachine", "status.addresses[].address", "string"},
		{"VCDMachine", "status.failureDomain", "string"},
		{"VCDMachine", "status.conditions[].type", "string"},
		{"VCDMachineTemplate", "spec.template.metadata.annotations", "object"},
		{"VCDMachineTemplate", "spec.template.spec", "object"},
		{"VCDMachineTemplate", "status.capacity", "object"},
		{"VCDMachineTemplate", "status.nodeInfo.architecture", "string"},
		{"VCDMachineTemplate", "status.nodeInfo.operatingSystem", "string"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+"."+tt.path, func(t *testing.T) {
			g := NewWithT(t)

			field := fieldAt(&crds[tt.kind].definition.Spec, tt.path)

			g.Expect(field).ToNot(BeNil())
			g.Expect(field.Type).To(Equal(tt.fieldType))
		})
	}
}

func TestEveryKindHasItsCategoryAgeColumnAndScope(t *testing.T) {
	for kind, c := range loadCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(c.definition.Spec.Names.ListKind).To(Equal(kind + "List"))
			g.Expect(c.definition.Spec.Names.Categories).To(ConsistOf("cluster-api"))
			g.Expect(c.definition.Spec.Versions).To(HaveLen(1))
			g.Expect(c.definition.Spec.Versions[0].AdditionalPrinterColumns).To(ContainElement(
				HaveField("JSONPath", ".metadata.creationTimestamp")))
			wanted := apiextensionsv1.NamespaceScoped
			if kind == "VCDClusterIdentity" {
				wanted = apiextensionsv1.ClusterScoped
			}
			g.Expect(c.definition.Spec.Scope).To(Equal(wanted))
		})
	}
}

// TestEverySpecFieldIsClassified checks that each description states the mutability of the field, as the package
// comment promises: immutable, mutable in place, or written by the controller. Nested fields have the same mutability.
func TestEverySpecFieldIsClassified(t *testing.T) {
	const class = `(?i)\b(immutable|mutable\s+in\s+place|written by the controller)\b`
	for kind, c := range loadCRDs(t) {
		spec := fieldAt(&c.definition.Spec, "spec")
		for name, field := range spec.Properties {
			t.Run(kind+".spec."+name, func(t *testing.T) {
				NewWithT(t).Expect(field.Description).To(MatchRegexp(class))
			})
		}
	}
}

// TestEveryFieldHasADescription checks that all fields of this API have descriptions. Fields that Kubernetes defines
// are exempt.
func TestEveryFieldHasADescription(t *testing.T) {
	eachField(t, func(g *WithT, at string, field *apiextensionsv1.JSONSchemaProps) {
		if strings.Count(at, ".") > 1 || !strings.HasSuffix(at, ".metadata") {
			g.Expect(field.Description).ToNot(BeEmpty(), at)
		}
	})
}

// TestEveryDefaultIsDocumented checks that descriptions contain the default of each field, because `kubectl explain`
// does not show defaults.
func TestEveryDefaultIsDocumented(t *testing.T) {
	eachField(t, func(g *WithT, at string, field *apiextensionsv1.JSONSchemaProps) {
		if field.Default != nil && field.Type != "object" {
			value := strings.Trim(string(field.Default.Raw), `"`)
			g.Expect(field.Description).To(Or(ContainSubstring(value+", which is the default"),
				ContainSubstring(value+", the default"), ContainSubstring(value+" (default)"),
				ContainSubstring(value+" if empty")), at)
		}
	})
}

// eachField calls visit for the fields of all kinds, with their paths.
func eachField(t *testing.T, visit func(g *WithT, at string, field *apiextensionsv1.JSONSchemaProps)) {
	t.Helper()
	for kind, c := range loadCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			visitFields(NewWithT(t), kind, c.definition.Spec.Versions[0].Schema.OpenAPIV3Schema, visit)
		})
	}
}

func visitFields(g *WithT, path string, props *apiextensionsv1.JSONSchemaProps,
	visit func(g *WithT, at string, field *apiextensionsv1.JSONSchemaProps),
) {
	for name, field := range props.Properties {
		at := path + "." + name
		visit(g, at, &field)
		if field.Items != nil {
			visitFields(g, at+"[]", field.Items.Schema, visit)
		}
		visitFields(g, at, &field, visit)
	}
}

// TestConditionsAndReasonsAreDocumented checks the names and comments of the constants for condition types and reasons.
func TestConditionsAndReasonsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	conditions := documentedConstants(t, "Condition")
	reasons := documentedConstants(t, "Reason")

	for name, comment := range conditions {
		g.Expect(comment).To(MatchRegexp("^" + name + " is (True|False) (when|while) "))
	}
	g.Expect(len(conditions)).To(BeNumerically(">=", 11))
	g.Expect(len(reasons)).To(BeNumerically(">=", 20))
}

// documentedConstants returns the comments of the API's constants with a suffix, by name. The name of each constant
// must match its value.
func documentedConstants(t *testing.T, suffix string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("../api/v1beta4/*.go")
	g.Expect(err).ToNot(HaveOccurred())
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		g.Expect(err).ToNot(HaveOccurred())
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || !strings.HasSuffix(spec.Names[0].Name, suffix) {
				return true
			}
			name := spec.Names[0].Name
			g.Expect(spec.Values).To(ContainElement(HaveField("Value",
				strconv.Quote(strings.TrimSuffix(name, suffix)))), name)
			g.Expect(spec.Doc.Text()).To(And(HavePrefix(name+" "), HaveSuffix(".\n")), name)
			comments[name] = spec.Doc.Text()
			return true
		})
	}
	return comments
}
