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
	"maps"
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

// A callGraph contains, for each file, the files that it calls, with the names of the called functions.
type callGraph map[string]map[string]map[string]bool

// reportCycles prints, for each package, the largest cycle of calls between its files. If edges is set, it also prints
// the calls in the cycle.
func reportCycles(out io.Writer, root string, edges bool) error {
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
		calls, err := callsBetweenFiles(p, exports)
		if err != nil {
			return err
		}
		cycle := calls.largestCycle()
		if len(cycle) > 1 {
			fmt.Fprintf(out, "%s: %d of %d files in one cycle: %s\n", p.ImportPath, len(cycle), len(p.GoFiles),
				strings.Join(cycle, " "))
			if edges {
				calls.printEdges(out, cycle)
			}
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

// printEdges prints the calls between files of a cycle.
func (g callGraph) printEdges(out io.Writer, cycle []string) {
	for _, from := range cycle {
		for _, to := range cycle {
			if functions := slices.Sorted(maps.Keys(g[from][to])); len(functions) > 0 {
				fmt.Fprintf(out, "  %s calls %s: %s\n", from, to, strings.Join(functions, " "))
			}
		}
	}
}

// largestCycle returns the files of the largest group in which each file calls every other, directly or through others.
func (g callGraph) largestCycle() []string {
	reach := map[string]map[string]bool{}
	for file := range g {
		reach[file] = g.reachable(file)
	}
	var largest []string
	for file := range g {
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
	return largest
}

// reachable returns the files that a file calls, directly or through others.
func (g callGraph) reachable(from string) map[string]bool {
	seen := map[string]bool{}
	queue := []string{from}
	for len(queue) > 0 {
		file := queue[0]
		queue = queue[1:]
		for next := range g[file] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// callsBetweenFiles returns, for each file of a package, the other files whose functions and methods it uses.
func callsBetweenFiles(p listed, exports map[string]string) (callGraph, error) {
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
	calls := callGraph{}
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
			calls[from] = map[string]map[string]bool{}
		}
		if calls[from][to] == nil {
			calls[from][to] = map[string]bool{}
		}
		calls[from][to][id.Name] = true
	}
	return calls, nil
}
