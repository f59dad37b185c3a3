// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Lengths in units of the plot.
const (
	panelWidth  = 400
	panelHeight = 180
	columns     = 2
	left        = 70 // of the axes in a panel
	right       = 370
	top         = 44
	bottom      = 134
	// labelWidth is the width of the longest label of the horizontal axis.
	labelWidth = 40
)

const plotHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="t d">
  <title id="t">Costs of the manager by number of machines</title>
  <desc id="d">%[3]s</desc>
  <style>
    text { font: 12px system-ui, sans-serif; fill: #57606a; }
    .t { font-size: 13px; font-weight: 600; fill: #1f2328; }
    .c { text-anchor: middle; }
    .e { text-anchor: end; }
    .page { fill: #ffffff; }
    .axis { stroke: #d0d7de; }
    .curve { fill: none; stroke: #0969da; stroke-width: 2; }
    .point { fill: #0969da; }
    @media (prefers-color-scheme: dark) {
      text { fill: #b1bac4; }
      .t { fill: #e6edf3; }
      .page { fill: #0d1117; }
      .axis { stroke: #30363d; }
      .curve { stroke: #58a6ff; }
      .point { fill: #58a6ff; }
    }
  </style>
  <rect class="page" width="%[1]d" height="%[2]d" rx="8"/>
`

// plotOf returns an SVG with a panel for each figure. Both axes are linear and begin at zero, so a cost that is
// proportional to the number of machines is a straight line through the origin.
func plotOf(results []result) string {
	panels := figures(results)
	rows := (len(panels) + columns - 1) / columns
	last := results[len(results)-1]
	var out strings.Builder
	fmt.Fprintf(&out, plotHead, columns*panelWidth, rows*panelHeight, fmt.Sprintf(
		"%d panels with measurements of up to %d clusters and %d machines on %d processors.",
		len(panels), last.Clusters, last.Machines, last.CPUs))
	for i, f := range panels {
		fmt.Fprintf(&out, "  <g transform=\"translate(%d %d)\">\n", i%columns*panelWidth, i/columns*panelHeight)
		drawPanel(&out, f, results)
		out.WriteString("  </g>\n")
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func drawPanel(out *strings.Builder, f figure, results []result) {
	machines := func(r result) float64 { return float64(r.Machines) }
	most := largestOf(results, machines)
	highest := roundUp(largestOf(results, f.of))
	x := func(r result) float64 { return left + (right-left)*machines(r)/most }
	y := func(r result) float64 { return bottom - (bottom-top)*f.of(r)/highest }
	fmt.Fprintf(out, "    <text class=\"t\" x=\"12\" y=\"24\">%s</text>\n", f.title)
	fmt.Fprintf(out, "    <path class=\"axis\" fill=\"none\" d=\"M%d %d V%d H%d\"/>\n", left, top, bottom, right)
	fmt.Fprintf(out, "    <text class=\"e\" x=\"%d\" y=\"%d\">%s</text>\n", left-6, top+4, strings.TrimSpace(fmt.Sprintf("%g %s", highest, f.unit)))
	fmt.Fprintf(out, "    <text class=\"e\" x=\"%d\" y=\"%d\">0</text>\n", left-6, bottom+4)
	fmt.Fprintf(out, "    <text class=\"c\" x=\"%d\" y=\"%d\">machines</text>\n", (left+right)/2, bottom+34)
	labelled := math.Inf(1)
	for _, r := range slices.Backward(results) {
		if labelled-x(r) >= labelWidth {
			labelled = x(r)
			fmt.Fprintf(out, "    <text class=\"c\" x=\"%.1f\" y=\"%d\">%d</text>\n", x(r), bottom+18, r.Machines)
		}
	}
	var points []string
	for _, r := range results {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(r), y(r)))
	}
	fmt.Fprintf(out, "    <polyline class=\"curve\" points=\"%s\"/>\n", strings.Join(points, " "))
	for _, r := range results {
		fmt.Fprintf(out, "    <circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x(r), y(r))
	}
}

func largestOf(results []result, of func(result) float64) float64 {
	values := make([]float64, 0, len(results))
	for _, r := range results {
		values = append(values, of(r))
	}
	return slices.Max(values)
}

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten, for the end of an axis.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, step := range []float64{1, 2, 5} {
		if x <= step*power {
			return step * power
		}
	}
	return 10 * power
}
