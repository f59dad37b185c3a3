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
			"a document that matches",
			`{"tree": {"name": "x", "children": [{"name": "y"}]}, "size": 3, "mode": "a", "extra": true}`, "",
		},
		{"null where it may be", `{"tree": {"name": "x"}, "size": null}`, ""},
		{"a missing key", `{"size": 1}`, "required key [tree] not found"},
		{"a wrong type", `{"tree": {"name": 1}}`, "/tree/name: it is not of type string"},
		{"a fraction for an integer", `{"tree": {"name": "x"}, "size": 1.5}`, "/size: it is not of type"},
		{
			"a wrong item deep down", `{"tree": {"name": "x", "children": [{}]}}`,
			"/tree/children/0: required key [name] not found",
		},
		{"a key too many", `{"tree": {"name": "x", "more": 1}}`, "key [more] is not permitted"},
		{
			"another key of the wrong type", `{"tree": {"name": "x"}, "extra": "no"}`,
			"/extra: it is not of type boolean",
		},
		{"a value not listed", `{"tree": {"name": "x"}, "mode": "c"}`, "c is not one of [a b]"},
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

func TestSchemasThatGoNowhere(t *testing.T) {
	g := NewWithT(t)
	g.Expect(jsonschema.Validate(map[string]any{"$ref": "#/definitions/none"},
		map[string]any{})).To(MatchError(ContainSubstring("which is not there")))
	loop := map[string]any{
		"$ref":        "#/definitions/a",
		"definitions": map[string]any{"a": map[string]any{"$ref": "#/definitions/a"}},
	}
	g.Expect(jsonschema.Validate(loop, 1.0)).To(MatchError(ContainSubstring("nested too deeply")))
}
