// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
)

const schema = `{
	"definitions": {"node": {"type": "object", "required": ["name"], "properties": {
		"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/definitions/node"}}}, "additionalProperties": false}},
	"type": "object", "required": ["tree"],
	"properties": {"tree": {"$ref": "#/definitions/node"}, "size": {"type": ["integer", "null"]}, "mode": {"enum": ["a", "b"]}},
	"additionalProperties": {"type": "boolean"}
}`

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name, document, refusal string
	}{
		{
			"a matching document",
			`{"tree": {"name": "x", "children": [{"name": "y"}]}, "size": 3, "mode": "a", "extra": true}`,
			"",
		},
		{"null if allowed", `{"tree": {"name": "x"}, "size": null}`, ""},
		{"a missing key", `{"size": 1}`, "#: missing property 'tree'"},
		{"a wrong type", `{"tree": {"name": 1}}`, "#/tree/name: got number, want string"},
		{"a fraction for an integer", `{"tree": {"name": "x"}, "size": 1.5}`, "#/size: got number, want"},
		{
			"an invalid nested item",
			`{"tree": {"name": "x", "children": [{}]}}`,
			"#/tree/children/0: missing property 'name'",
		},
		{"an additional key", `{"tree": {"name": "x", "more": 1}}`, "#/tree: additional properties 'more' not allowed"},
		{
			"another key of the wrong type",
			`{"tree": {"name": "x"}, "extra": "no"}`,
			"#/extra: got string, want boolean",
		},
		{"a value outside the enum", `{"tree": {"name": "x"}, "mode": "c"}`, "#/mode: value must be one of 'a', 'b'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var s, document map[string]any
			g.Expect(json.Unmarshal([]byte(schema), &s)).To(Succeed())
			g.Expect(json.Unmarshal([]byte(tc.document), &document)).To(Succeed())
			err := jsonschema.Validate(s, document)
			if tc.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(jsonschema.ErrInvalid))
			g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
		})
	}
}

func TestUnresolvableSchemas(t *testing.T) {
	for name, schema := range map[string]map[string]any{
		"a missing definition":       {"$ref": "#/definitions/none"},
		"a file":                     {"$ref": "file:///etc/hostname"},
		"another site":               {"$ref": "https://example.com/schema.json"},
		"a type that does not exist": {"type": "thing"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := jsonschema.Compile(schema)

			g.Expect(err).To(HaveOccurred())
			g.Expect(jsonschema.Validate(schema, map[string]any{})).To(MatchError(jsonschema.ErrInvalid))
		})
	}
}
