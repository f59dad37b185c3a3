// SPDX-License-Identifier: Apache-2.0

// Package jsonschema checks documents against the JSON Schemas that types of defined entities have: draft 7, complete
// in themselves.
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

// ErrInvalid is what every refusal wraps.
var ErrInvalid = errors.New("the document does not match its schema")

// at is the address of a schema, to which its references are relative.
const at = "https://schema.invalid/"

// noLoader refuses references to other schemas: nothing outside the schema is read.
type noLoader struct{}

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not part of the schema", url)
}

// Compile returns a schema, or why it is none.
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

// Validate checks a decoded document.
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

// problems are the innermost causes, each with where it is.
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
