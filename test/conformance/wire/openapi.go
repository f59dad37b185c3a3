// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// prefix is the path prefix of cloudapi.
const prefix = "/cloudapi"

// An OpenAPI is VMware's OpenAPI document, prepared to validate exchanges.
type OpenAPI struct {
	paths   []path
	schemas openapi3.Schemas
}

type path struct {
	template string
	segments []string // an empty segment matches anything
	item     *openapi3.PathItem
}

// externalReference matches references to other files, which were merged into this document.
var externalReference = regexp.MustCompile(`"#/definitions/\w+\.yaml#/definitions/`)

var reference = regexp.MustCompile(`"#/definitions/(\w+)"`)

// LoadOpenAPI reads VMware's document from a file. References to undefined schemas accept any value.
func LoadOpenAPI(file string) (*OpenAPI, error) {
	data, err := os.ReadFile(file) //nolint:gosec // from the module cache
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		return nil, fmt.Errorf("parsing the OpenAPI document: %w", err)
	}
	data = externalReference.ReplaceAll(data, []byte(`"#/definitions/`))
	var old openapi2.T
	if err := old.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("parsing the OpenAPI document: %w", err)
	}
	for _, m := range reference.FindAllSubmatch(data, -1) {
		if name := string(m[1]); old.Definitions[name] == nil {
			old.Definitions[name] = &openapi2.SchemaRef{Value: &openapi2.Schema{}}
		}
	}
	for _, d := range old.Definitions {
		fixSchema(d)
	}
	doc, err := openapi2conv.ToV3(&old)
	if err != nil {
		return nil, fmt.Errorf("converting the OpenAPI document: %w", err)
	}
	out := &OpenAPI{schemas: doc.Components.Schemas}
	for template, item := range doc.Paths.Map() {
		p := path{template: template, item: item}
		for _, s := range split(template) {
			if strings.HasPrefix(s, "{") {
				s = ""
			}
			p.segments = append(p.segments, s)
		}
		out.paths = append(out.paths, p)
	}
	slices.SortFunc(out.paths, func(a, b path) int { return strings.Compare(a.template, b.template) })
	return out, nil
}

// fixSchema corrects errors in the document: enumerations become strings, and objects without properties accept any
// value.
func fixSchema(d *openapi2.SchemaRef) {
	v := d.Value
	if v == nil {
		return
	}
	if len(v.Enum) > 0 && len(v.Properties) == 0 {
		v.Type = &openapi3.Types{openapi3.TypeString}
	}
	if extra := v.AdditionalProperties.Schema; extra != nil && extra.Value != nil && len(extra.Value.Properties) == 0 &&
		extra.Value.Type.Is("object") {
		v.AdditionalProperties = openapi3.AdditionalProperties{Has: openapi3.Ptr(true)}
	}
	for _, p := range v.Properties {
		if fixSchema(p); p.Value != nil && p.Value.Type.Is("object") && len(p.Value.Properties) == 0 &&
			p.Value.AdditionalProperties.Has == nil && p.Value.AdditionalProperties.Schema == nil {
			p.Value.Type = nil
		}
	}
	for _, p := range v.AllOf {
		fixSchema(p)
	}
	if v.Items != nil {
		fixSchema(v.Items)
	}
}

func split(p string) []string { return strings.Split(strings.Trim(p, "/"), "/") }

// find returns the matching path with the most literal segments, or nil if no path matches.
func (o *OpenAPI) find(uri string) *path {
	uri, _, _ = strings.Cut(uri, "?")
	parts := split(strings.TrimPrefix(uri, prefix))
	var best *path
	for i := range o.paths {
		p := &o.paths[i]
		if p.matches(parts) && (best == nil || p.literals() > best.literals()) {
			best = p
		}
	}
	return best
}

func (p *path) matches(parts []string) bool {
	if len(parts) != len(p.segments) {
		return false
	}
	for i, s := range p.segments {
		if s != "" && s != parts[i] {
			return false
		}
	}
	return true
}

func (p *path) literals() int {
	n := 0
	for _, s := range p.segments {
		if s != "" {
			n++
		}
	}
	return n
}

// Check validates the exchanges of cloudapi. It returns the violations and the number of validated exchanges.
func (o *OpenAPI) Check(exchanges []vcdsim.Exchange) ([]Violation, int) {
	var out []Violation
	n := 0
	for _, x := range exchanges {
		if !strings.HasPrefix(x.URI, prefix+"/") {
			continue
		}
		n++
		out = append(out, o.check(x)...)
	}
	return distinct(out), n
}

func (o *OpenAPI) check(x vcdsim.Exchange) []Violation {
	var out []Violation
	report := func(where, what string, body []byte) {
		v := Violation{Operation: x.Operation, Status: x.Status, Where: where, What: what, Body: excerpt(body)}
		if !tolerated(v) {
			out = append(out, v)
		}
	}
	failed := x.Status >= http.StatusBadRequest
	p := o.find(x.URI)
	if p == nil || p.item.GetOperation(x.Method) == nil {
		if !failed {
			report("route", "the document does not define "+x.Method+" on this path", nil)
		}
		return out
	}
	if failed {
		for _, what := range checkError(x) {
			report("response", what, x.Response)
		}
		return out // Clients send invalid requests deliberately.
	}
	op := p.item.GetOperation(x.Method)
	if body := op.RequestBody; body != nil && len(x.Request) > 0 {
		for _, what := range o.checkBody(body.Value.Content, x.Request, request) {
			report("request", what, x.Request)
		}
	}
	answer := op.Responses.Value(strconv.Itoa(x.Status))
	if answer == nil {
		report("response", "the document does not define this status", x.Response)
		return out
	}
	for _, what := range o.checkBody(answer.Value.Content, x.Response, response) {
		report("response", what, x.Response)
	}
	return out
}

// checkError validates an error response against the common format of VCD's errors.
func checkError(x vcdsim.Exchange) []string {
	var body map[string]any
	if err := json.Unmarshal(x.Response, &body); err != nil {
		return []string{"the error is not JSON"}
	}
	var out []string
	for _, field := range []string{"minorErrorCode", "message"} {
		if s, _ := body[field].(string); s == "" {
			out = append(out, "the error has no "+field)
		}
	}
	return out
}

type direction int

const (
	request direction = iota
	response
)

// checkBody validates the body of a request or response against its schema.
func (o *OpenAPI) checkBody(content openapi3.Content, body []byte, dir direction) []string {
	var schema *openapi3.SchemaRef
	for _, media := range content {
		schema = media.Schema
	}
	body = bytes.TrimSpace(body)
	switch {
	case schema == nil && len(body) > 0 && dir == response:
		return []string{"the document defines no body here"}
	case schema == nil || len(body) == 0 && dir == request:
		return nil
	case len(body) == 0:
		return []string{"the body is missing"}
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return []string{"the body is not JSON"}
	}
	v = withoutNulls(v)
	var out []string
	if err := schema.Value.VisitJSON(v, openapi3.MultiErrors(), openapi3.SetSchemaRegexCompiler(pattern)); err != nil {
		out = flatten(err)
	}
	if dir == response { // Clients may send fields of newer versions.
		out = append(out, o.unknownFields("", schema.Value, v)...)
	}
	return out
}

// withoutNulls removes null fields, because the document has no nullable fields and VCD sends null for unset fields.
func withoutNulls(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range x {
			if item != nil {
				out[k] = withoutNulls(item)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(x))
		for _, item := range x {
			out = append(out, withoutNulls(item))
		}
		return out
	}
	return v
}

func flatten(err error) []string {
	var many openapi3.MultiError
	if errors.As(err, &many) {
		var out []string
		for _, e := range many {
			out = append(out, flatten(e)...)
		}
		return out
	}
	var one *openapi3.SchemaError
	if errors.As(err, &one) {
		return []string{"/" + strings.Join(anyIndex(one.JSONPointer()), "/") + ": " + one.Reason}
	}
	return []string{err.Error()}
}

// anyIndex replaces indexes in a path with *, so that the same violation in several items is reported once.
func anyIndex(path []string) []string {
	out := slices.Clone(path)
	for i, p := range out {
		if _, err := strconv.Atoi(p); err == nil {
			out[i] = "*"
		}
	}
	return out
}

// unknownFields lists the fields that the schema does not define.
func (o *OpenAPI) unknownFields(at string, schema *openapi3.Schema, v any) []string {
	var out []string
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			if schema.Items != nil {
				out = append(out, o.unknownFields(at+"/*", schema.Items.Value, item)...)
			}
		}
	case map[string]any:
		known, open := properties(o.concrete(schema, x))
		for k, item := range x {
			switch p := known[k]; {
			case p != nil:
				out = append(out, o.unknownFields(at+"/"+k, p, item)...)
			case !open:
				out = append(out, at+"/"+k+": the document does not define this field")
			}
		}
	}
	return out
}

// schemaAliases maps kinds that have no schema of the same name to the schema that applies.
var schemaAliases = map[string]string{"VdcVmPolicy": "VdcComputePolicy"}

// concrete returns the schema that the discriminator of a value selects, or the given schema without a discriminator.
func (o *OpenAPI) concrete(schema *openapi3.Schema, v map[string]any) *openapi3.Schema {
	if schema.Discriminator == nil {
		return schema
	}
	name, _ := v[schema.Discriminator.PropertyName].(string)
	if s := o.schemas[cmp.Or(schemaAliases[name], name)]; s != nil {
		return s.Value
	}
	return schema
}

// properties returns the properties of a schema and its parts. open reports whether additional properties are allowed.
func properties(schema *openapi3.Schema) (known map[string]*openapi3.Schema, open bool) {
	known = map[string]*openapi3.Schema{}
	for name, p := range schema.Properties {
		known[name] = p.Value
	}
	for _, part := range schema.AllOf {
		more, o := properties(part.Value)
		open = open || o && len(part.Value.Properties) == 0 && part.Value.AdditionalProperties.Schema != nil
		for name, p := range more {
			known[name] = p
		}
	}
	extra := schema.AdditionalProperties
	return known, open || extra.Schema != nil || extra.Has != nil && *extra.Has || len(known) == 0
}

var lookahead = regexp.MustCompile(`\(\?=[^)]*\)`)

// pattern compiles a pattern of the document. It removes lookaheads, which Java supports but Go does not.
func pattern(expr string) (openapi3.RegexMatcher, error) {
	re, err := regexp.Compile(lookahead.ReplaceAllString(expr, ""))
	if err != nil {
		return nil, fmt.Errorf("compiling the pattern %q: %w", expr, err)
	}
	return re, nil
}
