// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// counts are the printed counts of a folder.
type counts struct {
	embeds      int
	literals    int
	assignments int
}

// report prints the counts of each top-level folder. With list it also prints each place.
func report(out io.Writer, files []*source, list bool) error {
	folders := map[string]*counts{}
	structs := structsByFolder(files)
	for _, f := range files {
		c := folders[topOf(f)]
		if c == nil {
			c = &counts{}
			folders[topOf(f)] = c
		}
		embeds := embeddedPointers(f, structs[f.folder])
		literals := packedLiterals(f)
		several := assignments(f, 3)
		c.embeds += len(embeds)
		c.literals += len(literals)
		c.assignments += len(several)
		if !list {
			continue
		}
		for _, e := range embeds {
			fmt.Fprintf(out, "%s:%d: embeds %s\n", f.path, f.line(e.Pos()), f.source(e))
		}
		for _, l := range literals {
			fmt.Fprintf(out, "%s:%d: literal with several elements on one line\n", f.path, f.line(l.Pos()))
		}
		for _, a := range several {
			fmt.Fprintf(out, "%s:%d: assigns %d values\n", f.path, f.line(a.stmt.Pos()), len(a.stmt.Lhs))
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "folder\tembedded pointers\tpacked literals\tassignments of three or more\t")
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		c := folders[folder]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", folder, c.embeds, c.literals, c.assignments)
	}
	return w.Flush()
}

// topOf returns the first folder of a file's path. Tests are counted separately.
func topOf(f *source) string {
	top, _, _ := strings.Cut(f.folder, "/")
	if f.isTest() {
		top += " (tests)"
	}
	return top
}

// structsByFolder returns the names of struct types by folder.
func structsByFolder(files []*source) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for _, f := range files {
		if found[f.folder] == nil {
			found[f.folder] = map[string]bool{}
		}
		ast.Inspect(f.file, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				if _, ok := t.Type.(*ast.StructType); ok {
					found[f.folder][t.Name.Name] = true
				}
			}
			return true
		})
	}
	return found
}

// embeddedPointers returns the fields of structs that embed a pointer to a struct of the same package.
func embeddedPointers(f *source, structs map[string]bool) []*ast.Field {
	var found []*ast.Field
	ast.Inspect(f.file, func(n ast.Node) bool {
		t, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range t.Fields.List {
			star, ok := field.Type.(*ast.StarExpr)
			if !ok || len(field.Names) > 0 {
				continue
			}
			if id := rootOf(star.X); id != nil && structs[id.Name] && id == star.X {
				found = append(found, field)
			}
		}
		return true
	})
	return found
}
