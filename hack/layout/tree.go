// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A source is a Go file that is not generated.
type source struct {
	path   string // relative to the working directory
	folder string // relative to the root
	text   []byte
	set    *token.FileSet
	file   *ast.File
}

// parseTree parses the Go files in root, except for generated files and folders of caches and build output.
func parseTree(root string) ([]*source, error) {
	var files []*source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && skipped(entry.Name()):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parse(root, path)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f.file) {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading sources: %w", err)
	}
	return files, nil
}

func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "out" || folder == "testdata" || folder == "node_modules"
}

func parse(root, path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	folder, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("naming the folder of %s: %w", path, err)
	}
	return &source{
		path:   path,
		folder: filepath.ToSlash(folder),
		text:   text,
		set:    set,
		file:   file,
	}, nil
}

// line returns the line number of a position.
func (s *source) line(p token.Pos) int {
	return s.set.Position(p).Line
}

// offset returns the offset of a position in the text of the file.
func (s *source) offset(p token.Pos) int {
	return s.set.Position(p).Offset
}

// source returns the text of a node.
func (s *source) source(n ast.Node) string {
	return string(bytes.TrimSpace(s.text[s.offset(n.Pos()):s.offset(n.End())]))
}

func (s *source) isTest() bool {
	return strings.HasSuffix(s.path, "_test.go")
}

// reparse returns the file with a new text.
func reparse(s *source, text []byte) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, s.path, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	changed := *s
	changed.set = set
	changed.file = file
	changed.text = text
	return &changed, nil
}
