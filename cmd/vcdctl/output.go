// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printJSON prints a value as JSON.
func (p *program) printJSON(value any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// A table prints rows with aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(to io.Writer, headings ...string) table {
	t := table{tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)}
	t.row(headings...)
	return t
}

// row adds a row. It removes control characters, because tenants choose the names in VCD.
func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// warnOfHidden prints the reasons why some objects are hidden.
func (p *program) warnOfHidden(reasons []string) {
	for _, why := range reasons {
		fmt.Fprintln(p.errors, "Warning:", printable(why))
	}
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// age returns the age of a time in the format of kubectl, or "-" if the time is unknown.
func age(at, now time.Time) string {
	const day = 24 * time.Hour
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d/day))
}
