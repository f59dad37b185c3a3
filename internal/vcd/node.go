// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// A node is an element as the server wrote it, prefixes included. Documents that are read, changed in one element and
// sent back go through nodes, because the SDK's types lose prefixes, and what they do not know.
type node struct {
	name     xml.Name // Space is the prefix, not the namespace
	attrs    []xml.Attr
	children []any // *node or xml.CharData
}

// parseXML reads a document into its root node.
func parseXML(document []byte) (*node, error) {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	top := &node{}
	open := []*node{top}
	for {
		raw, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNotXML
		}
		if open = grow(open, raw); open == nil {
			return nil, errNotXML
		}
	}
	for _, child := range top.children {
		if root, ok := child.(*node); ok && len(open) == 1 {
			return root, nil
		}
	}
	return nil, errNotXML
}

// grow adds a token to the innermost of the open nodes and returns those that are open then; nil if the token does not
// fit.
func grow(open []*node, raw xml.Token) []*node {
	inner := open[len(open)-1]
	switch t := xml.CopyToken(raw).(type) {
	case xml.StartElement:
		child := &node{name: t.Name, attrs: t.Attr}
		inner.children = append(inner.children, child)
		return append(open, child)
	case xml.EndElement:
		if len(open) == 1 || inner.name != t.Name {
			return nil
		}
		return open[:len(open)-1]
	case xml.CharData:
		inner.children = append(inner.children, t)
	}
	return open
}

// newNode converts a value of Go into a node.
func newNode(what any) (*node, error) {
	document, err := xml.Marshal(what)
	if err != nil {
		return nil, errors.New("writing a request")
	}
	return parseXML(document)
}

// nodes returns the children of a name, whatever their prefix.
func (n *node) nodes(local string) []*node {
	var found []*node
	for _, child := range n.children {
		if c, ok := child.(*node); ok && c.name.Local == local {
			found = append(found, c)
		}
	}
	return found
}

// first returns the first child of a name, or nil.
func (n *node) first(local string) *node {
	if found := n.nodes(local); len(found) > 0 {
		return found[0]
	}
	return nil
}

// text returns the text of the first child of a name.
func (n *node) text(local string) string {
	child := n.first(local)
	if child == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range child.children {
		if text, ok := part.(xml.CharData); ok {
			b.Write(text)
		}
	}
	return b.String()
}

// setText replaces the content of a node.
func (n *node) setText(text string) { n.children = []any{xml.CharData(text)} }

// setTextAt replaces the content of the node at a path below n, if it is there.
func (n *node) setTextAt(text string, path ...string) {
	for _, name := range path {
		if n = n.first(name); n == nil {
			return
		}
	}
	n.setText(text)
}

// attr returns the value of an attribute, whatever its prefix.
func (n *node) attr(local string) string {
	for _, a := range n.attrs {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

// setAttr changes an attribute; it adds one without a prefix if there is none of that name.
func (n *node) setAttr(local, value string) {
	for i, a := range n.attrs {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			n.attrs[i].Value = value
			return
		}
	}
	n.attrs = append(n.attrs, xml.Attr{Name: xml.Name{Local: local}, Value: value})
}

// insertBefore puts nodes before the first child of a name, or at the end.
func (n *node) insertBefore(local string, added ...*node) {
	at := len(n.children)
	for i, child := range n.children {
		if c, ok := child.(*node); ok && c.name.Local == local {
			at = i
			break
		}
	}
	rest := append([]any{}, n.children[at:]...)
	n.children = n.children[:at]
	for _, a := range added {
		n.children = append(n.children, a)
	}
	n.children = append(n.children, rest...)
}

// keep drops all children but those that a function wants.
func (n *node) keep(want func(*node) bool) {
	kept := n.children[:0]
	for _, child := range n.children {
		if c, ok := child.(*node); ok && want(c) {
			kept = append(kept, c)
		}
	}
	n.children = kept
}

// document writes the node as a document.
func (n *node) document() []byte {
	var b bytes.Buffer
	b.WriteString(xmlHeader)
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	b.WriteString("<" + prefixed(n.name))
	for _, a := range n.attrs {
		b.WriteString(" " + prefixed(a.Name) + `="`)
		_ = xml.EscapeText(b, []byte(a.Value)) // a buffer takes everything
		b.WriteString(`"`)
	}
	b.WriteString(">")
	for _, child := range n.children {
		switch c := child.(type) {
		case *node:
			c.write(b)
		case xml.CharData:
			_ = xml.EscapeText(b, c) // a buffer takes everything
		}
	}
	b.WriteString("</" + prefixed(n.name) + ">")
}

func prefixed(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}
