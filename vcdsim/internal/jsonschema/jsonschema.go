// SPDX-License-Identifier: Apache-2.0

// Package jsonschema validates documents against the JSON Schemas of defined entity types: draft 7, without external
// references.
package jsonschema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// ErrInvalid is wrapped by every validation error.
var ErrInvalid = errors.New("the document does not match its schema")

// at is the base URL of a schema.
const at = "https://schema.invalid/"

// noLoader rejects references to other schemas, so that nothing outside the schema is read.
type noLoader struct{}

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not part of the schema", url)
}

// Compile compiles a schema. It returns an error if the schema is invalid.
func Compile(schema map[string]any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(noLoader{})
	if err := c.AddResource(at, schema); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return compiled, nil
}

// Validate validates a decoded document.
func Validate(schema map[string]any, document any) error {
	compiled, err := Compile(schema)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	err = compiled.Validate(document)
	if problem, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		all := problems(problem, message.NewPrinter(language.English))
		slices.Sort(all)
		return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(slices.Compact(all), "; "))
	}
	return err
}

// problems returns the innermost causes of a validation error with their locations.
func problems(e *jsonschema.ValidationError, p *message.Printer) []string {
	if len(e.Causes) == 0 {
		where := "#" + strings.TrimSuffix("/"+strings.Join(e.InstanceLocation, "/"), "/")
		return []string{where + ": " + e.ErrorKind.LocalizedString(p)}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, problems(cause, p)...)
	}
	return all
}
