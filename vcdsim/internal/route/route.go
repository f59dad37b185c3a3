// SPDX-License-Identifier: Apache-2.0

// Package route finds the handler of a request path. It matches the escaped path and accepts a trailing slash and %3A
// as VCD does. Unlike the standard multiplexer, it never redirects or cleans paths.
package route

import (
	"net/url"
	"regexp"
	"strings"
)

// A Table maps methods and patterns to values. A pattern is a path whose segments may be `{name}` or `literal{name}`.
// Literals take precedence over variables.
type Table[T any] struct {
	bySize map[int][]*entry[T]
}

type entry[T any] struct {
	method    string
	segments  []segment
	operation string
	value     T
}

type segment struct {
	prefix string // the whole segment if it has no variable
	name   string // name of the variable
}

// A Match is a result of Find.
type Match[T any] struct {
	Value     T
	Vars      map[string]string
	Operation string // method and path without IDs, for counters
}

// A Result is the kind of the result of Find.
type Result int

// Results of Find.
const (
	Unknown     Result = iota // no such path
	WrongMethod               // the path exists, the method does not
	Found
)

// Add registers a pattern.
func (t *Table[T]) Add(method, pattern string, value T) {
	if t.bySize == nil {
		t.bySize = map[int][]*entry[T]{}
	}
	e := &entry[T]{method: method, value: value}
	var named []string
	for _, s := range strings.Split(strings.Trim(pattern, "/"), "/") {
		seg := parse(s)
		e.segments = append(e.segments, seg)
		if p := strings.TrimSuffix(seg.prefix, "-"); p != "" {
			named = append(named, p)
		}
	}
	e.operation = method + " /" + strings.Join(named, "/")
	t.bySize[len(e.segments)] = append(t.bySize[len(e.segments)], e)
}

func parse(s string) segment {
	prefix, rest, ok := strings.Cut(s, "{")
	if !ok {
		return segment{prefix: s}
	}
	return segment{prefix: prefix, name: strings.TrimSuffix(rest, "}")}
}

// Find returns the route of a request by its escaped path.
func (t *Table[T]) Find(method, escapedPath string) (Match[T], Result) {
	parts, ok := split(escapedPath)
	if !ok {
		return Match[T]{Operation: method + " " + stripIDs(escapedPath)}, Unknown
	}
	result := Unknown
	var best *entry[T]
	for _, e := range t.bySize[len(parts)] {
		if !e.matches(parts) {
			continue
		}
		if e.method != method {
			result = max(result, WrongMethod)
			continue
		}
		if best == nil || e.moreLiteral(best) {
			best = e
			result = Found
		}
	}
	if best == nil {
		return Match[T]{Operation: method + " " + stripIDs(escapedPath)}, result
	}
	return Match[T]{Value: best.value, Vars: best.vars(parts), Operation: best.operation}, Found
}

func split(escapedPath string) ([]string, bool) {
	parts := strings.Split(strings.Trim(escapedPath, "/"), "/")
	for i, p := range parts {
		u, err := url.PathUnescape(p)
		if err != nil {
			return nil, false
		}
		parts[i] = u
	}
	return parts, true
}

func (e *entry[T]) matches(parts []string) bool {
	for i, s := range e.segments {
		rest, ok := strings.CutPrefix(parts[i], s.prefix)
		if !ok || (rest == "") != (s.name == "") {
			return false
		}
	}
	return true
}

func (e *entry[T]) moreLiteral(other *entry[T]) bool {
	for i, s := range e.segments {
		if len(s.prefix) != len(other.segments[i].prefix) {
			return len(s.prefix) > len(other.segments[i].prefix)
		}
	}
	return false
}

func (e *entry[T]) vars(parts []string) map[string]string {
	vars := map[string]string{}
	for i, s := range e.segments {
		if s.name != "" {
			vars[s.name] = parts[i][len(s.prefix):]
		}
	}
	return vars
}

var ids = regexp.MustCompile(
	`(urn(:|%3A)[a-zA-Z0-9.]+(:|%3A)[a-zA-Z0-9.]+(:|%3A))?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// stripIDs removes IDs from a path that no pattern matches.
func stripIDs(path string) string {
	path = ids.ReplaceAllString(path, "")
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return strings.TrimSuffix(strings.ReplaceAll(path, "-/", "/"), "/")
}
