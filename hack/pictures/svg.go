// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"strings"
)

// Lengths in units of the drawing.
const (
	width   = 400
	margin  = 12
	gap     = 8
	line    = 16 // the height of a line of text
	padding = 10 // above and below the text of a box
	stem    = 30 // the length of an arrow
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="t d">
  <title id="t">%[3]s</title>
  <desc id="d">%[4]s</desc>
  <style>
    text { font: 12px system-ui, sans-serif; fill: #57606a; }
    .t { font-size: 13px; font-weight: 600; fill: #1f2328; }
    .c { text-anchor: middle; }
    .page { fill: #ffffff; }
    .group { fill: #f6f8fa; stroke: #d0d7de; }
    .box { fill: #ffffff; stroke: #57606a; }
    .ours { fill: #ddf4ff; stroke: #0969da; }
    path { fill: none; stroke: #57606a; stroke-width: 1.5; }
    marker path { fill: #57606a; stroke: none; }
    @media (prefers-color-scheme: dark) {
      text { fill: #b1bac4; }
      .t { fill: #e6edf3; }
      .page { fill: #0d1117; }
      .group { fill: #161b22; stroke: #30363d; }
      .box { fill: #0d1117; stroke: #9198a1; }
      .ours { fill: #0c2d6b; stroke: #58a6ff; }
      path { stroke: #9198a1; }
      marker path { fill: #9198a1; }
    }
  </style>
  <defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>
  <rect class="page" width="%[1]d" height="%[2]d" rx="8"/>
`

// A drawing is a column of items.
type drawing struct {
	title       string
	description string
	items       []item
}

// An item has a height, and draws itself at a place of some width.
type item interface {
	height() int
	draw(out *strings.Builder, x, y, width int)
}

func (d drawing) svg() string {
	var out strings.Builder
	fmt.Fprintf(&out, head, width, stackHeight(d.items)+2*margin, html.EscapeString(d.title), html.EscapeString(d.description))
	drawStack(&out, d.items, margin, margin, width-2*margin)
	out.WriteString("</svg>\n")
	return out.String()
}

func stackHeight(items []item) int {
	height := 0
	for i, it := range items {
		height += it.height() + space(items, i)
	}
	return height
}

// space returns the distance of an item from the one above it. Arrows touch both.
func space(items []item, i int) int {
	if i == 0 || isArrow(items[i]) || isArrow(items[i-1]) {
		return 0
	}
	return gap
}

func isArrow(it item) bool {
	_, ok := it.(arrow)
	return ok
}

func drawStack(out *strings.Builder, items []item, x, y, width int) {
	for i, it := range items {
		y += space(items, i)
		it.draw(out, x, y, width)
		y += it.height()
	}
}

// A box has a title and lines of text below it. Parts of this project have a color of their own.
type box struct {
	title string
	lines []string
	ours  bool
}

func part(title string, lines ...string) box {
	return box{
		title: title,
		lines: lines,
		ours:  true,
	}
}

func other(title string, lines ...string) box {
	return box{
		title: title,
		lines: lines,
	}
}

func (b box) height() int { return 2*padding + line*(1+len(b.lines)) }

func (b box) draw(out *strings.Builder, x, y, width int) {
	b.drawHigh(out, x, y, width, b.height())
}

// drawHigh draws the box with the height of the highest of its row.
func (b box) drawHigh(out *strings.Builder, x, y, width, height int) {
	class := "box"
	if b.ours {
		class = "ours"
	}
	fmt.Fprintf(out, "  <rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class, x, y, width, height)
	base := y + (height-b.height())/2 + padding + line - 4
	text(out, "t c", x+width/2, base, b.title)
	for i, l := range b.lines {
		text(out, "c", x+width/2, base+line*(i+1), l)
	}
}

func text(out *strings.Builder, class string, x, y int, content string) {
	fmt.Fprintf(out, "  <text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(content))
}

// A row has boxes side by side.
type row []box

func (r row) height() int {
	highest := 0
	for _, b := range r {
		highest = max(highest, b.height())
	}
	return highest
}

func (r row) draw(out *strings.Builder, x, y, width int) {
	each := (width - gap*(len(r)-1)) / len(r)
	for i, b := range r {
		b.drawHigh(out, x+i*(each+gap), y, each, r.height())
	}
}

// A group is a frame with a title around a column of items.
type group struct {
	title string
	items []item
}

func frame(title string, items ...item) group {
	return group{
		title: title,
		items: items,
	}
}

func (g group) height() int { return padding + line + gap + stackHeight(g.items) + margin }

func (g group) draw(out *strings.Builder, x, y, width int) {
	fmt.Fprintf(out, "  <rect class=\"group\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", x, y, width, g.height())
	text(out, "t", x+margin, y+padding+line-4, g.title)
	drawStack(out, g.items, x+margin, y+padding+line+gap, width-2*margin)
}

// An arrow connects the items above and below it. Its lines of text are on its right side.
type arrow []string

func down(lines ...string) arrow { return lines }

func (a arrow) height() int { return stem + line*max(0, len(a)-1) }

func (a arrow) draw(out *strings.Builder, x, y, width int) {
	middle := x + width/2
	fmt.Fprintf(out, "  <path d=\"M%d %d V%d\" marker-end=\"url(#a)\"/>\n", middle, y+2, y+a.height()-2)
	for i, l := range a {
		text(out, "", middle+10, y+stem/2+4+line*i, l)
	}
}
