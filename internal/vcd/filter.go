// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"net/url"
	"strings"
)

// fiqlMeta are the characters that mean something in a filter. VCD offers no way to escape them.
const fiqlMeta = ";,()*=!<>\"'\\"

// checkName refuses names that a filter cannot carry, before they change its meaning.
func checkName(kind, name, in string) error {
	switch {
	case name == "":
		return &LookupError{Kind: kind, Name: name, In: in, Reason: "has no name", Err: ErrInvalid}
	case strings.ContainsAny(name, fiqlMeta):
		return &LookupError{
			Kind: kind,
			Name: name,
			In:   in,
			Err:  ErrInvalid,
			Reason: fmt.Sprintf("cannot be looked up: the name has one of the characters %s; refer to it by its URN",
				fiqlMeta),
		}
	}
	return nil
}

// A term is one comparison of a filter. References are compared by URN: VCD also takes an address, but compares it as
// text, and its public address may differ from the one that requests go to.
type term struct{ field, value string }

// is compares a field with a value.
func is(field, value string) term { return term{field, value} }

func (t term) String() string { return t.field + "==" + escapeValue(t.value) }

// escapeValue encodes a value for the query string, where VCD wants the operators of the filter bare.
func escapeValue(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// allOf joins terms so that each must hold.
func allOf(terms ...term) string { return joinTerms(terms, ";") }

// anyOf joins terms so that one must hold, in parentheses.
func anyOf(terms ...term) string { return "(" + joinTerms(terms, ",") + ")" }

func joinTerms(terms []term, by string) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return strings.Join(parts, by)
}

// anyOfChunks is [anyOf] in as many filters as it takes to keep each shorter than limit.
func anyOfChunks(field string, values []string, limit int) [][]term {
	var chunks [][]term
	var chunk []term
	length := 0
	for _, value := range values {
		t := is(field, value)
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

// jsonFilter encodes a filter for the JSON API, which wants it encoded as a whole.
func jsonFilter(terms ...term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.field + "==" + t.value
	}
	return url.QueryEscape(strings.Join(parts, ";"))
}
