// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// crd is a CRD with the validation steps that an API server performs when it creates or updates objects.
type crd struct {
	definition *apiextensionsv1.CustomResourceDefinition
	structural *schema.Structural
	schema     apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// loadCRDs reads the generated CRDs, by kind. Each has only its storage version.
func loadCRDs(t *testing.T) map[string]*crd {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("crd/bases/*.yaml")
	g.Expect(err).ToNot(HaveOccurred())
	crds := map[string]*crd{}
	for _, file := range files {
		c := loadCRD(t, file)
		crds[c.definition.Spec.Names.Kind] = c
	}
	return crds
}

func loadCRD(t *testing.T, file string) *crd {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(file)
	g.Expect(err).ToNot(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(data, definition)).To(Succeed())
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	definition.Status.StoredVersions = []string{infrav1.GroupVersion.Version}

	internal := &apiextensions.CustomResourceDefinition{}
	g.Expect(apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition,
		internal, nil)).To(Succeed())
	g.Expect(apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), internal)).
		To(BeEmpty(), "the API server would refuse %s", file)

	definition.Spec.Versions = slices.DeleteFunc(definition.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
	props := &apiextensions.JSONSchemaProps{}
	g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil)).To(Succeed())
	structural, err := schema.NewStructural(props)
	g.Expect(err).ToNot(HaveOccurred())
	validator, _, err := apiservervalidation.NewSchemaValidator(props)
	g.Expect(err).ToNot(HaveOccurred())
	return &crd{
		definition: definition,
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// admit processes a new or changed object as the API server does: it drops nulls, sets defaults, rejects unknown
// fields, and validates.
func (c *crd) admit(t *testing.T, obj, oldObj map[string]any) field.ErrorList {
	t.Helper()
	g := NewWithT(t)
	unknown := pruning.PruneWithOptions(obj, c.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	g.Expect(unknown).To(BeEmpty(), "unknown fields")
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, c.structural)
	defaulting.Default(obj, c.structural)

	errs := apiservervalidation.ValidateCustomResource(nil, obj, c.schema)
	if c.rules == nil {
		return errs
	}
	// A nil map in an interface is not nil, so the rules would treat it as an old object.
	var former any
	if oldObj != nil {
		defaulting.Default(oldObj, c.structural)
		former = oldObj
	}
	ruleErrs, _ := c.rules.Validate(context.Background(), nil, c.structural, obj, former,
		celconfig.RuntimeCELCostBudget)
	return append(errs, ruleErrs...)
}

// parse decodes a YAML object and merges changes into it. A null value removes a field.
func parse(t *testing.T, base string, changes ...string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	obj := map[string]any{}
	for _, text := range append([]string{base}, changes...) {
		data, err := yaml.YAMLToJSON([]byte(text))
		g.Expect(err).ToNot(HaveOccurred(), text)
		patch := map[string]any{}
		g.Expect(json.Unmarshal(data, &patch)).To(Succeed(), text)
		merge(obj, patch)
	}
	return obj
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		child, isMap := value.(map[string]any)
		existing, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			merge(existing, child)
		default:
			into[key] = value
		}
	}
}

func fieldsOf(errs field.ErrorList) []string {
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	return fields
}
