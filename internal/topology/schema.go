// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// withDefaults returns a value with the defaults of its schema, including those of nested fields.
func withDefaults(value any, schema *clusterv1.JSONSchemaProps) any {
	if value == nil && schema.Default != nil {
		value, _ = decode(schema.Default.Raw) // validated by the API server
	}
	switch v := value.(type) {
	case map[string]any:
		defaultFields(v, schema)
	case []any:
		if schema.Items != nil {
			for i := range v {
				v[i] = withDefaults(v[i], schema.Items)
			}
		}
	}
	return value
}

func defaultFields(fields map[string]any, schema *clusterv1.JSONSchemaProps) {
	for name, property := range schema.Properties {
		if _, given := fields[name]; given || property.Default != nil {
			fields[name] = withDefaults(fields[name], &property)
		}
	}
	if schema.AdditionalProperties == nil {
		return
	}
	for name := range fields {
		if _, known := schema.Properties[name]; !known {
			fields[name] = withDefaults(fields[name], schema.AdditionalProperties)
		}
	}
}

// check returns the errors in the value of a variable.
func check(name string, value any, schema *clusterv1.JSONSchemaProps) []error {
	openAPI, err := convertSchema(schema)
	if err != nil {
		return []error{fmt.Errorf("variable %s: %w", name, err)}
	}
	var errs []error
	for _, wrong := range validate.NewSchemaValidator(openAPI, nil, name, strfmt.Default).Validate(value).Errors {
		errs = append(errs, fmt.Errorf("variable %s: %s", name, strings.Replace(wrong.Error(), " in body", "", 1)))
	}
	for _, field := range unknownFields(value, schema, name) {
		errs = append(errs, fmt.Errorf("variable %s: the ClusterClass does not define %s", name, field))
	}
	return errs
}

func convertSchema(schema *clusterv1.JSONSchemaProps) (*spec.Schema, error) {
	converted := &spec.Schema{}
	raw, err := json.Marshal(schema)
	if err == nil {
		err = json.Unmarshal(raw, converted)
	}
	if err != nil {
		return nil, fmt.Errorf("reading its schema: %w", err)
	}
	return converted, nil
}

// unknownFields returns the paths of fields that are not in the schema of a value. path is the path of the value.
func unknownFields(value any, schema *clusterv1.JSONSchemaProps, path string) []string {
	var unknown []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			property, known := schema.Properties[name]
			switch {
			case known:
				unknown = append(unknown, unknownFields(v[name], &property, path+"."+name)...)
			case schema.AdditionalProperties != nil:
				unknown = append(unknown, unknownFields(v[name], schema.AdditionalProperties, path+"."+name)...)
			case !ptr.Deref(schema.XPreserveUnknownFields, false):
				unknown = append(unknown, path+"."+name)
			}
		}
	case []any:
		if schema.Items != nil {
			for i := range v {
				unknown = append(unknown, unknownFields(v[i], schema.Items, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	}
	return unknown
}
