// SPDX-License-Identifier: Apache-2.0

// Package fiql writes filters of both of VCD's APIs, in the language that they share, and refuses names that would change
// the meaning of one. It does not know what the fields are.
package fiql

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// fiqlMeta are the characters that mean something in a filter. VCD offers no way to escape them.
const fiqlMeta = ";,()*=!<>\"'\\"

// CheckName refuses names that a filter cannot carry, before they change its meaning.
func CheckName(kind, name, in string) error {
	switch {
	case name == "":
		return &failure.LookupError{Kind: kind, Name: name, In: in, Reason: "has no name", Err: failure.ErrInvalid}
	case strings.ContainsAny(name, fiqlMeta):
		return &failure.LookupError{
			Kind: kind,
			Name: name,
			In:   in,
			Err:  failure.ErrInvalid,
			Reason: fmt.Sprintf("cannot be looked up because its name contains one of the characters %s: use "+
				"its URN",
				fiqlMeta),
		}
	}
	return nil
}

// A Term is one comparison of a filter. References are compared by URN: VCD also takes an address, but compares it as
// text, and its public address may differ from the one that requests go to.
type Term struct {
	field string
	kind  string // of the value, with the colon after it, if the term names it
	value string
	glob  bool // asterisks in the value stand for any characters
}

// Is compares a field with a value.
func Is(field, value string) Term { return Term{field: field, value: value} }

// Like compares a field with a pattern, in which an asterisk stands for any characters.
func Like(field, pattern string) Term { return Term{field: field, value: pattern, glob: true} }

// HasMetadata compares an entry of metadata in the domain GENERAL with a text.
func HasMetadata(key, text string) Term {
	return Term{field: "metadata:" + Escape(key), kind: "STRING:", value: text}
}

// String returns the term as it stands in a query string.
func (t Term) String() string {
	value := Escape(t.value)
	if t.glob {
		value = strings.ReplaceAll(value, "%2A", "*")
	}
	return t.field + "==" + t.kind + value
}

// Escape encodes a value for the query string, where VCD wants the operators of the filter bare.
func Escape(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// AllOf joins terms so that each must hold.
func AllOf(terms ...Term) string { return joinTerms(terms, ";") }

// AnyOf joins terms so that one must hold, in parentheses.
func AnyOf(terms ...Term) string { return "(" + joinTerms(terms, ",") + ")" }

func joinTerms(terms []Term, by string) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return strings.Join(parts, by)
}

// AnyOfChunks is [anyOf] in as many filters as it takes to keep each shorter than limit.
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

// JSON encodes a filter for the JSON API, which wants it encoded as a whole.
func JSON(terms ...Term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.field + "==" + t.kind + t.value
	}
	return url.QueryEscape(strings.Join(parts, ";"))
}
