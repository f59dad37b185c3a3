// SPDX-License-Identifier: Apache-2.0

// Package xmltree reads and writes the XML of the simulator. It writes elements with literal prefixes in the order in
// which they were added. The reader compares local names only, as VCD's own parser ignores prefixes. The package does
// not know the meaning of the elements.
package xmltree

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// An Attr is an attribute. The name includes its prefix, if any.
type Attr struct {
	Name  string
	Value string
}

// A Node is an element. It has either text or children.
type Node struct {
	Name     string // with the prefix for writing, local name after reading
	Attrs    []Attr
	Children []*Node
	Text     string
}

// New returns an element with parts: an Attr, a []Attr, a *Node, a []*Node, or a string for the text. Nil nodes and
// zero Attrs are omitted, so that callers need no branch for optional parts.
func New(name string, parts ...any) *Node {
	n := &Node{Name: name}
	for _, p := range parts {
		n.Add(p)
	}
	return n
}

// Add appends a part, which has one of the types that New accepts.
func (n *Node) Add(part any) {
	switch p := part.(type) {
	case nil:
	case Attr:
		if p.Name != "" {
			n.Attrs = append(n.Attrs, p)
		}
	case []Attr:
		n.Attrs = append(n.Attrs, p...)
	case *Node:
		if p != nil {
			n.Children = append(n.Children, p)
		}
	case []*Node:
		for _, c := range p {
			n.Add(c)
		}
	case string:
		n.Text = p
	}
}

// A returns an attribute with a scalar value.
func A(name string, value any) Attr {
	return Attr{Name: name, Value: text(value)}
}

// Opt returns an attribute, or the zero Attr if the value is empty.
func Opt(name, value string) Attr {
	if value == "" {
		return Attr{}
	}
	return Attr{Name: name, Value: value}
}

// T returns an element that contains only text.
func T(name string, value any) *Node {
	return &Node{Name: name, Text: text(value)}
}

// OptT returns an element that contains only text, or nil if the text is empty.
func OptT(name, value string) *Node {
	if value == "" {
		return nil
	}
	return T(name, value)
}

// formatTime returns a time in the format of VCD: 2006-01-02T15:04:05.000Z07:00. It inserts the milliseconds into
// RFC 3339, for which the package time has a fast path.
func formatTime(t time.Time) string {
	const seconds = len("2006-01-02T15:04:05")
	var buffer [len("2006-01-02T15:04:05.000-07:00")]byte
	rfc := t.AppendFormat(buffer[:0], time.RFC3339)
	out := buffer[:len(rfc)+len(".000")]
	copy(out[seconds+len(".000"):], rfc[seconds:])
	var digits [len("1000")]byte
	copy(out[seconds:], strconv.AppendInt(digits[:0], int64(t.Nanosecond()/int(time.Millisecond)+1000), 10))
	out[seconds] = '.' // instead of the 1
	return string(out)
}

func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case int:
		return strconv.Itoa(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case time.Time:
		return formatTime(x)
	default:
		return fmt.Sprint(x)
	}
}

// Write writes the document with its XML declaration.
func (n *Node) Write(w io.Writer) error {
	var b bytes.Buffer
	b.Grow(n.size())
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n")
	n.write(&b, 0)
	_, err := w.Write(b.Bytes())
	return err
}

// String returns the element as text that Parse can read.
func (n *Node) String() string {
	var b bytes.Buffer
	n.write(&b, 0)
	return b.String()
}

func (n *Node) write(b *bytes.Buffer, depth int) {
	writeStrings(b, indentation(depth), "<", n.Name)
	for _, a := range n.Attrs {
		writeStrings(b, " ", a.Name, `="`)
		escape(b, a.Value)
		b.WriteByte('"')
	}
	switch {
	case len(n.Children) > 0:
		b.WriteString(">\n")
		for _, c := range n.Children {
			c.write(b, depth+1)
		}
		writeStrings(b, indentation(depth), "</", n.Name, ">\n")
	case n.Text != "":
		b.WriteByte('>')
		escape(b, n.Text)
		writeStrings(b, "</", n.Name, ">\n")
	case len(n.Attrs) > 0:
		b.WriteString("/>\n")
	default:
		writeStrings(b, "></", n.Name, ">\n")
	}
}

// size estimates the length of the element as text.
func (n *Node) size() int {
	const markup = 64
	size := 2*len(n.Name) + len(n.Text) + markup
	for _, a := range n.Attrs {
		size += len(a.Name) + len(a.Value) + len(` =""`)
	}
	for _, c := range n.Children {
		size += c.size()
	}
	return size
}

func writeStrings(b *bytes.Buffer, texts ...string) {
	for _, t := range texts {
		b.WriteString(t)
	}
}

const indent = "    "

// spaces is the indentation of the deepest level that needs no allocation.
var spaces = strings.Repeat(indent, 16)

func indentation(depth int) string {
	if width := depth * len(indent); width <= len(spaces) {
		return spaces[:width]
	}
	return strings.Repeat(indent, depth)
}

// escape writes a text, and replaces the characters that XML reserves. It copies most texts as they are, because
// EscapeText decodes each character. It ignores the error of EscapeText, as writes to a bytes.Buffer never fail.
func escape(b *bytes.Buffer, s string) {
	if isPlain(s) {
		b.WriteString(s)
		return
	}
	_ = xml.EscapeText(b, []byte(s))
}

// isPlain reports whether a text has only printable ASCII characters that XML does not reserve.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return false
		case c == '"' || c == '\'' || c == '&' || c == '<' || c == '>':
			return false
		}
	}
	return true
}

// errEmpty is the error for a document without an element.
var errEmpty = errors.New("no element")

// maxDepth is the maximum nesting depth of a document.
const maxDepth = 64

// Parse reads a document. The names of elements and attributes lose their prefix.
func Parse(data []byte) (*Node, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	document := &Node{}
	stack := []*Node{document}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("parsing XML: %w", err)
		}
		if stack = grow(stack, tok); len(stack) > maxDepth {
			return nil, fmt.Errorf("parsing XML: more than %d levels", maxDepth)
		}
	}
	if len(document.Children) == 0 {
		return nil, fmt.Errorf("parsing XML: %w", errEmpty)
	}
	return document.Children[0], nil
}

// grow adds a token to the innermost open element and returns the new stack. The decoder ensures that elements nest
// correctly.
func grow(stack []*Node, tok xml.Token) []*Node {
	top := stack[len(stack)-1]
	switch t := tok.(type) {
	case xml.StartElement:
		n := start(t)
		top.Children = append(top.Children, n)
		return append(stack, n)
	case xml.EndElement:
		return stack[:len(stack)-1]
	case xml.CharData:
		top.Text += string(t)
	}
	return stack
}

func start(t xml.StartElement) *Node {
	n := &Node{Name: t.Name.Local}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		n.Attrs = append(n.Attrs, Attr{Name: a.Name.Local, Value: a.Value})
	}
	return n
}

// Attr returns the value of an attribute. It is empty if the attribute is missing or n is nil.
func (n *Node) Attr(name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// At follows a path of element names and returns the first element at that path, or nil if it does not exist.
func (n *Node) At(path ...string) *Node {
	for _, name := range path {
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}

func (n *Node) child(name string) *Node {
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// All returns the children with the given name.
func (n *Node) All(name string) []*Node {
	if n == nil {
		return nil
	}
	var out []*Node
	for _, c := range n.Children {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Str returns the trimmed text at a path. It is empty if the path does not exist.
func (n *Node) Str(path ...string) string {
	if n = n.At(path...); n == nil {
		return ""
	}
	return strings.TrimSpace(n.Text)
}

// Int returns the number at a path. The result found is false if the path does not exist or the text is not a number.
func (n *Node) Int(path ...string) (value int64, found bool) {
	v, err := strconv.ParseInt(n.Str(path...), 10, 64)
	return v, err == nil
}

// Bool reports whether the text at a path is "true" or "1".
func (n *Node) Bool(path ...string) bool { return n.Str(path...) == "true" || n.Str(path...) == "1" }
