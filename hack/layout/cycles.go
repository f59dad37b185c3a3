// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A listed is a package in the output of "go list -export".
type listed struct {
	Dir        string
	ImportPath string
	Export     string
	GoFiles    []string
	DepOnly    bool
}

// reportCycles prints, for each package, the size of the largest cycle of calls between its files.
func reportCycles(out io.Writer, root string) error {
	packages, err := list(root)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range packages {
		if p.DepOnly || len(p.GoFiles) < 2 {
			continue
		}
		cycle, err := largestCycle(p, exports)
		if err != nil {
			return err
		}
		if len(cycle) > 1 {
			fmt.Fprintf(out, "%s: %d of %d files in one cycle: %s\n", p.ImportPath, len(cycle), len(p.GoFiles),
				strings.Join(cycle, " "))
		}
	}
	return nil
}

func list(root string) ([]listed, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var packages []listed
	decoder := json.NewDecoder(pipe)
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return packages, nil
}

// largestCycle returns the files of the largest group in which each file calls every other, directly or through others.
func largestCycle(p listed, exports map[string]string) ([]string, error) {
	calls, err := callsBetweenFiles(p, exports)
	if err != nil {
		return nil, err
	}
	reach := map[string]map[string]bool{}
	for file := range calls {
		reach[file] = reachable(calls, file)
	}
	var largest []string
	for file := range calls {
		var group []string
		for other := range reach[file] {
			if reach[other][file] {
				group = append(group, other)
			}
		}
		if len(group) > len(largest) {
			largest = group
		}
	}
	slices.Sort(largest)
	return largest, nil
}

func reachable(calls map[string]map[string]bool, from string) map[string]bool {
	seen := map[string]bool{}
	queue := []string{from}
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		for next := range calls[file] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// callsBetweenFiles returns, for each file of a package, the other files whose functions and methods it uses.
func callsBetweenFiles(p listed, exports map[string]string) (map[string]map[string]bool, error) {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing: %w", err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	pkg, err := config.Check(p.ImportPath, set, files, &info)
	if err != nil {
		return nil, fmt.Errorf("checking %s: %w", p.ImportPath, err)
	}
	calls := map[string]map[string]bool{}
	for id, object := range info.Uses {
		if _, ok := object.(*types.Func); !ok || object.Pkg() != pkg {
			continue
		}
		from := filepath.Base(set.Position(id.Pos()).Filename)
		to := filepath.Base(set.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if calls[from] == nil {
			calls[from] = map[string]bool{}
		}
		calls[from][to] = true
	}
	return calls, nil
}
