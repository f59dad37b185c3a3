// SPDX-License-Identifier: Apache-2.0

// Package xmltree is the XML side of the simulator: elements with literal prefixes that are written in the
// order they were put together, and a reader that compares local names only, as VCD's own parser is tolerant of
// prefixes. It knows nothing of what the elements mean.
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

// An Attr is an attribute; the name carries its prefix, if any.
type Attr struct {
	Name  string
	Value string
}

// A Node is an element. A node has text or children, not both.
type Node struct {
	Name     string // with prefix when written, local when read
	Attrs    []Attr
	Children []*Node
	Text     string
}

// New returns an element with the given parts: an Attr, a *Node, a []*Node, a []Attr or a string for the text.
// Nil nodes and zero Attrs are left out, so optional parts need no branch at the caller.
func New(name string, parts ...any) *Node {
	n := &Node{Name: name}
	for _, p := range parts {
		n.Add(p)
	}
	return n
}

// Add appends parts as New does.
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

// A makes an attribute from any scalar.
func A(name string, value any) Attr {
	return Attr{Name: name, Value: text(value)}
}

// Opt makes an attribute that is left out when the value is empty.
func Opt(name, value string) Attr {
	if value == "" {
		return Attr{}
	}
	return Attr{Name: name, Value: value}
}

// T makes an element that holds only text.
func T(name string, value any) *Node {
	return &Node{Name: name, Text: text(value)}
}

// OptT makes an element that is left out when the text is empty.
func OptT(name, value string) *Node {
	if value == "" {
		return nil
	}
	return T(name, value)
}

// timeFormat is VCD's: milliseconds and a numeric zone.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

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
		return x.Format(timeFormat)
	default:
		return fmt.Sprint(x)
	}
}

// Write writes the document with its XML declaration.
func (n *Node) Write(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n")
	n.write(&b, 0)
	_, err := w.Write(b.Bytes())
	return err
}

// String returns the element as text, for Parse.
func (n *Node) String() string {
	var b bytes.Buffer
	n.write(&b, 0)
	return b.String()
}

func (n *Node) write(b *bytes.Buffer, depth int) {
	indent := strings.Repeat("    ", depth)
	b.WriteString(indent + "<" + n.Name)
	for _, a := range n.Attrs {
		b.WriteString(" " + a.Name + `="`)
		escape(b, a.Value)
		b.WriteByte('"')
	}
	switch {
	case len(n.Children) > 0:
		b.WriteString(">\n")
		for _, c := range n.Children {
			c.write(b, depth+1)
		}
		b.WriteString(indent + "</" + n.Name + ">\n")
	case n.Text != "":
		b.WriteByte('>')
		escape(b, n.Text)
		b.WriteString("</" + n.Name + ">\n")
	case len(n.Attrs) > 0:
		b.WriteString("/>\n")
	default:
		b.WriteString("></" + n.Name + ">\n")
	}
}

// escape never fails: a bytes.Buffer does not.
func escape(b *bytes.Buffer, s string) { _ = xml.EscapeText(b, []byte(s)) }

// errEmpty is a document without an element.
var errEmpty = errors.New("no element")

// maxDepth bounds what a request body may nest.
const maxDepth = 64

// Parse reads a document. Names and attribute names lose their prefix.
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

// grow adds a token to the innermost open element; the decoder makes sure that elements nest.
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

// Attr returns the value of an attribute, empty if it is missing or n is nil.
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

// At follows a path of element names to the first such element, nil if there is none.
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

// All returns the children with a name.
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

// Str returns the trimmed text at a path, empty if it is missing.
func (n *Node) Str(path ...string) string {
	if n = n.At(path...); n == nil {
		return ""
	}
	return strings.TrimSpace(n.Text)
}

// Int returns the number at a path; found is false when it is missing or not a number.
func (n *Node) Int(path ...string) (value int64, found bool) {
	v, err := strconv.ParseInt(n.Str(path...), 10, 64)
	return v, err == nil
}

// Bool reports whether the text at a path is true.
func (n *Node) Bool(path ...string) bool { return n.Str(path...) == "true" || n.Str(path...) == "1" }
