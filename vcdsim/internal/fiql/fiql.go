// SPDX-License-Identifier: Apache-2.0

// Package fiql parses and evaluates the filter language of VCD's query service and cloudapi: == != =gt= =ge= =lt= =le=,
// `;` for and, `,` for or, parentheses and the wildcard *. It does not know record types: the caller resolves
// attributes.
package fiql

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Term is one comparison.
type Term struct {
	Attr  string
	Op    string
	Value string
}

// An Expr is a parsed filter. A nil *Expr matches everything.
type Expr struct {
	term *Term
	or   bool
	sub  []*Expr
}

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("syntax error in filter")

const maxDepth = 32

type parser struct {
	in    string
	pos   int
	depth int
}

// Parse parses a filter. An empty filter returns nil. As in VCD, a trailing `;` is accepted.
func Parse(filter string) (*Expr, error) {
	filter = strings.TrimSpace(filter)
	if filter == "" {
		return nil, nil // an empty filter matches everything
	}
	p := &parser{in: filter}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.pos != len(p.in) {
		return nil, fmt.Errorf("%w: unexpected %q at %d", ErrSyntax, p.in[p.pos], p.pos)
	}
	return e, nil
}

func (p *parser) or() (*Expr, error) { return p.list(',', true, p.and) }

func (p *parser) and() (*Expr, error) { return p.list(';', false, p.atom) }

func (p *parser) list(sep byte, or bool, next func() (*Expr, error)) (*Expr, error) {
	first, err := next()
	if err != nil {
		return nil, err
	}
	e := &Expr{or: or, sub: []*Expr{first}}
	for p.peek() == sep {
		p.pos++
		if p.pos == len(p.in) || p.peek() == ')' {
			break // trailing separator
		}
		sub, err := next()
		if err != nil {
			return nil, err
		}
		e.sub = append(e.sub, sub)
	}
	if len(e.sub) == 1 {
		return first, nil
	}
	return e, nil
}

func (p *parser) peek() byte {
	if p.pos >= len(p.in) {
		return 0
	}
	return p.in[p.pos]
}

func (p *parser) atom() (*Expr, error) {
	if p.peek() != '(' {
		return p.comparison()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("%w: nested too deeply", ErrSyntax)
	}
	defer func() { p.depth-- }()
	p.pos++
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek() != ')' {
		return nil, fmt.Errorf("%w: missing )", ErrSyntax)
	}
	p.pos++
	return e, nil
}

var operator = regexp.MustCompile(`^(==|!=|=gt=|=ge=|=lt=|=le=)`)

func (p *parser) comparison() (*Expr, error) {
	rest := p.in[p.pos:]
	i := strings.IndexAny(rest, "=!;,()")
	if i <= 0 {
		return nil, fmt.Errorf("%w: attribute expected at %d", ErrSyntax, p.pos)
	}
	op := operator.FindString(rest[i:])
	if op == "" {
		return nil, fmt.Errorf("%w: operator expected after %q", ErrSyntax, rest[:i])
	}
	value := rest[i+len(op):]
	if end := valueEnd(value); end >= 0 {
		value = value[:end]
	}
	p.pos += i + len(op) + len(value)
	return &Expr{term: &Term{Attr: strings.TrimSpace(rest[:i]), Op: op, Value: value}}, nil
}

// valueEnd returns the end of a value: the index of a separator, or of a closing parenthesis without an opening one in
// the value.
func valueEnd(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case ';', ',':
			return i
		case '(':
			open++
		case ')':
			if open == 0 {
				return i
			}
			open--
		}
	}
	return -1
}

// Terms returns all comparisons, in order.
func (e *Expr) Terms() []Term {
	if e == nil {
		return nil
	}
	if e.term != nil {
		return []Term{*e.term}
	}
	var out []Term
	for _, s := range e.sub {
		out = append(out, s.Terms()...)
	}
	return out
}

// Compile returns a filter as a function, for use on many items. It calls test once for each comparison. A nil *Expr
// matches every item.
func Compile[T any](e *Expr, test func(Term) func(T) bool) func(T) bool {
	if e == nil {
		return func(T) bool { return true }
	}
	if e.term != nil {
		return test(*e.term)
	}
	var tests []func(T) bool
	for _, s := range e.sub {
		tests = append(tests, Compile(s, test))
	}
	return func(item T) bool {
		for _, holds := range tests {
			if holds(item) == e.or {
				return e.or
			}
		}
		return !e.or
	}
}

// Compare evaluates a comparison with the value of a record. References in any form (href, URN, bare ID) are equal if
// they end in the same ID. Wildcards and case rules are those of VCD: names compare exactly.
func Compare(t Term, have string) bool { return t.Test()(have) }

// Test returns Compare for one comparison and any value. Use it to compare many values.
func (t Term) Test() func(have string) bool {
	switch t.Op {
	case "==":
		return equalTo(t.Value)
	case "!=":
		equal := equalTo(t.Value)
		return func(have string) bool { return !equal(have) }
	}
	compare := comparedTo(t.Value)
	switch t.Op {
	case "=gt=":
		return func(have string) bool { return compare(have) > 0 }
	case "=ge=":
		return func(have string) bool { return compare(have) >= 0 }
	case "=lt=":
		return func(have string) bool { return compare(have) < 0 }
	default:
		return func(have string) bool { return compare(have) <= 0 }
	}
}

// equalTo returns a function that reports whether a value matches a pattern.
func equalTo(pattern string) func(have string) bool {
	id := ID(pattern)
	wild := strings.Contains(pattern, "*")
	return func(have string) bool {
		switch {
		case pattern == have:
			return true
		case id != "" && refersTo(have, id):
			return true
		case wild:
			return wildcard(pattern, have)
		default:
			return (have == "true" || have == "false") && strings.EqualFold(pattern, have)
		}
	}
}

// ID returns the UUID at the end of a reference, or "" if the text is not a reference.
func ID(ref string) string {
	ref = strings.TrimSuffix(ref, "/")
	const size = 36
	if len(ref) < size {
		return ""
	}
	id := ref[len(ref)-size:]
	if !isUUID(id) || !refersTo(ref, id) {
		return ""
	}
	return id
}

// refersTo reports whether a text is an ID or a reference that ends in it.
func refersTo(ref, id string) bool {
	before, found := strings.CutSuffix(strings.TrimSuffix(ref, "/"), id)
	return found && (before == "" || strings.ContainsRune("/:-", rune(before[len(before)-1])))
}

func isUUID(s string) bool {
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

// wildcard reports whether a text matches a pattern with asterisks.
func wildcard(pattern, s string) bool {
	first, rest, _ := strings.Cut(pattern, "*")
	s, matches := strings.CutPrefix(s, first)
	for matches {
		part, more, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(s, rest)
		}
		_, s, matches = strings.Cut(s, part)
		rest = more
	}
	return false
}

// comparedTo returns a function that orders values relative to a limit: as dates, as numbers, or else as text.
func comparedTo(limit string) func(have string) int {
	limitNumber, isNumber := number(limit)
	limitDate, isDate := date(limit)
	return func(have string) int {
		if sameFormat(have, limit) {
			return strings.Compare(have, limit)
		}
		if isNumber {
			if x, ok := number(have); ok {
				return cmp.Compare(x, limitNumber)
			}
		}
		if isDate {
			if x, ok := date(have); ok {
				return x.Compare(limitDate)
			}
		}
		return strings.Compare(have, limit)
	}
}

// sameFormat reports whether two dates have the same format, so that they can be compared as text.
func sameFormat(a, b string) bool {
	const day = len(time.DateOnly)
	return len(a) == len(b) && len(a) > day && a[day] == 'T' && b[day] == 'T' && a[len(a)-1] == 'Z' && b[len(b)-1] == 'Z'
}

// number parses a number. It rejects most texts before parsing, because creating a parse error is more expensive.
func number(s string) (float64, bool) {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

func date(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
