// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// A Node is an element as the server wrote it, including prefixes. Documents that are read, changed in one element and
// sent back use nodes, because the types of the SDK lose prefixes and unknown elements.
type Node struct {
	Name     xml.Name // Space is the prefix, not the namespace
	attrs    []xml.Attr
	children []any // *Node or xml.CharData
}

// ParseXML parses a document and returns its root node.
func ParseXML(document []byte) (*Node, error) {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	top := &Node{}
	open := []*Node{top}
	for {
		raw, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNotXML
		}
		if open = addToken(open, raw); open == nil {
			return nil, errNotXML
		}
	}
	for _, child := range top.children {
		if root, ok := child.(*Node); ok && len(open) == 1 {
			return root, nil
		}
	}
	return nil, errNotXML
}

// addToken adds a token to the innermost open node and returns the nodes that are open after it, or nil if the token does
// not fit.
func addToken(open []*Node, raw xml.Token) []*Node {
	inner := open[len(open)-1]
	switch t := xml.CopyToken(raw).(type) {
	case xml.StartElement:
		child := &Node{Name: t.Name, attrs: t.Attr}
		inner.children = append(inner.children, child)
		return append(open, child)
	case xml.EndElement:
		if len(open) == 1 || inner.Name != t.Name {
			return nil
		}
		return open[:len(open)-1]
	case xml.CharData:
		inner.children = append(inner.children, t)
	}
	return open
}

// NewNode converts a Go value to a node.
func NewNode(what any) (*Node, error) {
	document, err := xml.Marshal(what)
	if err != nil {
		return nil, errors.New("writing a request")
	}
	return ParseXML(document)
}

// Nodes returns the children with a local name, with any prefix.
func (n *Node) Nodes(local string) []*Node {
	var found []*Node
	for _, child := range n.children {
		if c, ok := child.(*Node); ok && c.Name.Local == local {
			found = append(found, c)
		}
	}
	return found
}

// First returns the first child with a local name, or nil.
func (n *Node) First(local string) *Node {
	if found := n.Nodes(local); len(found) > 0 {
		return found[0]
	}
	return nil
}

// Text returns the text of the first child with a local name, or the empty string.
func (n *Node) Text(local string) string {
	child := n.First(local)
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

// SetText replaces the content of a node.
func (n *Node) SetText(text string) { n.children = []any{xml.CharData(text)} }

// SetTextAt replaces the content of the node at a path below n, if that node exists.
func (n *Node) SetTextAt(text string, path ...string) {
	for _, name := range path {
		if n = n.First(name); n == nil {
			return
		}
	}
	n.SetText(text)
}

// Attr returns the value of an attribute with a local name and any prefix, or the empty string.
func (n *Node) Attr(local string) string {
	for _, a := range n.attrs {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

// SetAttr sets an attribute. If no attribute has that local name, it adds one without a prefix.
func (n *Node) SetAttr(local, value string) {
	for i, a := range n.attrs {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			n.attrs[i].Value = value
			return
		}
	}
	n.attrs = append(n.attrs, xml.Attr{Name: xml.Name{Local: local}, Value: value})
}

// InsertBefore inserts nodes before the first child with a local name, or at the end.
func (n *Node) InsertBefore(local string, added ...*Node) {
	at := len(n.children)
	for i, child := range n.children {
		if c, ok := child.(*Node); ok && c.Name.Local == local {
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

// Keep removes all children but the nodes for which want returns true.
func (n *Node) Keep(want func(*Node) bool) {
	kept := n.children[:0]
	for _, child := range n.children {
		if c, ok := child.(*Node); ok && want(c) {
			kept = append(kept, c)
		}
	}
	n.children = kept
}

// Document encodes the node as a document.
func (n *Node) Document() []byte {
	var b bytes.Buffer
	b.WriteString(xmlHeader)
	n.write(&b)
	return b.Bytes()
}

func (n *Node) write(b *bytes.Buffer) {
	b.WriteString("<" + prefixed(n.Name))
	for _, a := range n.attrs {
		b.WriteString(" " + prefixed(a.Name) + `="`)
		_ = xml.EscapeText(b, []byte(a.Value)) // writes to a buffer do not fail
		b.WriteString(`"`)
	}
	b.WriteString(">")
	for _, child := range n.children {
		switch c := child.(type) {
		case *Node:
			c.write(b)
		case xml.CharData:
			_ = xml.EscapeText(b, c) // writes to a buffer do not fail
		}
	}
	b.WriteString("</" + prefixed(n.Name) + ">")
}

func prefixed(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}
