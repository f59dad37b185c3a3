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
			name:     "a matching document",
			document: `{"tree": {"name": "x", "children": [{"name": "y"}]}, "size": 3, "mode": "a", "extra": true}`,
		},
		{name: "null if allowed", document: `{"tree": {"name": "x"}, "size": null}`},
		{name: "a missing key", document: `{"size": 1}`, refusal: "#: missing property 'tree'"},
		{name: "a wrong type", document: `{"tree": {"name": 1}}`, refusal: "#/tree/name: got number, want string"},
		{name: "a fraction for an integer", document: `{"tree": {"name": "x"}, "size": 1.5}`, refusal: "#/size: got number, want"},
		{
			name:     "an invalid nested item",
			document: `{"tree": {"name": "x", "children": [{}]}}`,
			refusal:  "#/tree/children/0: missing property 'name'",
		},
		{name: "an additional key", document: `{"tree": {"name": "x", "more": 1}}`, refusal: "#/tree: additional properties 'more' not allowed"},
		{
			name:     "another key of the wrong type",
			document: `{"tree": {"name": "x"}, "extra": "no"}`,
			refusal:  "#/extra: got string, want boolean",
		},
		{name: "a value outside the enum", document: `{"tree": {"name": "x"}, "mode": "c"}`, refusal: "#/mode: value must be one of 'a', 'b'"},
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
