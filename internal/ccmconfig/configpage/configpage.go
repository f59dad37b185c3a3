// SPDX-License-Identifier: Apache-2.0

// Package configpage compares the reference page of a cloud's configuration with its schema. Only tests use it.
package configpage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Code converts single quotes to back quotes, because tags cannot contain back quotes.
func Code(s string) string { return strings.ReplaceAll(s, "'", "`") }

// Comments returns the field comments of the schema in a file, each on one line, by type and field.
func Comments(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
	return all
}

// Hold compares a page with its expected content. If update is set, it writes the page first. command is the command
// that does so.
func Hold(t *testing.T, path, want, command string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // A page that all may read.
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path) //nolint:gosec // The test names the page.
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != want {
		t.Errorf("%s does not match the schema, run: %s", path, command)
	}
}
