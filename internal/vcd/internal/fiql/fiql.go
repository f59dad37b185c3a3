// SPDX-License-Identifier: Apache-2.0

// Package fiql writes filters in FIQL, the filter language of both of VCD's APIs. It rejects names that would change
// the meaning of a filter. It is independent of the meaning of the fields.
package fiql

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// fiqlMeta are the characters that have a meaning in a filter. VCD offers no way to escape them.
const fiqlMeta = ";,()*=!<>\"'\\"

// CheckName rejects a name that cannot be used in a filter because it would change its meaning.
func CheckName(kind, name, in string) error {
	switch {
	case name == "":
		return &failure.LookupError{Kind: kind, Name: name, In: in, Reason: "has no name", Err: failure.ErrInvalid}
	case strings.ContainsAny(name, fiqlMeta):
		return &failure.LookupError{
			Kind:   kind,
			Name:   name,
			In:     in,
			Err:    failure.ErrInvalid,
			Reason: fmt.Sprintf("cannot be looked up because its name contains one of the characters %s: use its URN", fiqlMeta),
		}
	}
	return nil
}

// A Term is one comparison in a filter. References are compared by URN: VCD also accepts a URL, but compares it as
// text, and its public address may differ from the address that requests go to.
type Term struct {
	field string
	kind  string // type of the value with a trailing colon, or empty
	value string
	glob  bool // asterisks in the value match any characters
}

// Is compares a field with a value.
func Is(field, value string) Term { return Term{field: field, value: value} }

// Like compares a field with a pattern, in which an asterisk matches any characters.
func Like(field, pattern string) Term { return Term{field: field, value: pattern, glob: true} }

// HasMetadata compares a metadata entry in the domain GENERAL with a text.
func HasMetadata(key, text string) Term {
	return Term{field: "metadata:" + Escape(key), kind: "STRING:", value: text}
}

// String returns the term encoded for a query string.
func (t Term) String() string {
	value := Escape(t.value)
	if t.glob {
		value = strings.ReplaceAll(value, "%2A", "*")
	}
	return t.field + "==" + t.kind + value
}

// Escape encodes a value for a query string, in which VCD expects the operators of the filter unescaped.
func Escape(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// AllOf returns a filter that matches if all terms match.
func AllOf(terms ...Term) string { return joinTerms(terms, ";") }

// AnyOf returns a filter, in parentheses, that matches if any term matches.
func AnyOf(terms ...Term) string { return "(" + joinTerms(terms, ",") + ")" }

func joinTerms(terms []Term, by string) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return strings.Join(parts, by)
}

// AnyOfChunks returns the terms for several [AnyOf] filters, each shorter than limit, that together compare a field
// with all values.
func AnyOfChunks(field string, values []string, limit int) [][]Term {
	var chunks [][]Term
	var chunk []Term
	length := 0
	for _, value := range values {
		t := Is(field, value)
		if len(chunk) > 0 && length+len(t.String()) > limit {
			chunks = append(chunks, chunk)
			chunk = nil
			length = 0
		}
		chunk = append(chunk, t)
		length += len(t.String()) + 1
	}
	if len(chunk) > 0 {
		chunks = append(chunks, chunk)
	}
	return chunks
}

// JSON encodes a filter for the JSON API, which expects the whole filter escaped.
func JSON(terms ...Term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.field + "==" + t.kind + t.value
	}
	return url.QueryEscape(strings.Join(parts, ";"))
}
