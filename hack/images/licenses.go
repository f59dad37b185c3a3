// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licenseName matches files that say under which terms code is given.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|copyright|patents|unlicense)([-.].*)?$`)

// licenseFolder is where images keep them.
const licenseFolder = "/licenses"

// certain is the part of a text, in percent, that must be a licence's for the licence to be named.
const certain = 75

// A noticed module is one with its licences.
type noticed struct {
	files map[string][]byte // by path in the image
	ids   []string          // SPDX, sorted; empty if none was recognised
}

// notices returns the terms of the modules that a program is linked from, by path@version; "std" is Go's own library
// and "main" this project. Only folders on the way to packages that are linked are looked at.
func (b build) notices(ctx context.Context, p program, arch string) (allNotices, error) {
	packages, err := b.packages(ctx, p, arch)
	if err != nil {
		return nil, err
	}
	goRoot, err := b.goRoot(ctx)
	if err != nil {
		return nil, err
	}
	found := allNotices{}
	seen := map[string]bool{}
	for _, pkg := range packages {
		name, top, dir := origin(pkg, goRoot)
		for ; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if err := found.add(name, top, dir); err != nil {
				return nil, err
			}
			if dir == top {
				break
			}
		}
	}
	return found, nil
}

// origin tells the module of a package, where the module begins, and where its packages' terms are to be looked for.
func origin(pkg goPackage, goRoot string) (name, top, dir string) {
	switch m := pkg.Module; {
	case m == nil:
		return stdlib, goRoot, goRoot
	case m.Main:
		return mainModule, m.Dir, m.Dir
	case m.Replace != nil:
		return m.Replace.Path + "@" + m.Replace.Version, m.Replace.Dir, pkg.Dir
	default:
		return m.Path + "@" + m.Version, m.Dir, pkg.Dir
	}
}

// Names of modules that have no version of their own.
const (
	stdlib     = "std"
	mainModule = "main"
)

// allNotices are the terms by path@version of the module.
type allNotices map[string]*noticed

// add notes the terms in a folder of a module.
func (a allNotices) add(name, top, dir string) error {
	if a[name] == nil {
		a[name] = &noticed{files: map[string][]byte{}}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for licences: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenseName.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading a licence: %w", err)
		}
		below, err := filepath.Rel(top, filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading a licence: %w", err)
		}
		a[name].files[path.Join(licenseFolder, placeOf(name), filepath.ToSlash(below))] = content
		a[name].recognise(content)
	}
	return nil
}

// placeOf is the folder of a module's terms: this project's are at the top.
func placeOf(name string) string {
	if name == mainModule {
		return ""
	}
	return path.Join("third-party", name)
}

func (n *noticed) recognise(text []byte) {
	coverage := licensecheck.Scan(text)
	if coverage.Percent < certain {
		return
	}
	ids := map[string]bool{}
	for _, id := range n.ids {
		ids[id] = true
	}
	for _, match := range coverage.Match {
		if !strings.HasPrefix(match.ID, "Google") { // its own name for the patent grant of Go, which SPDX does not know
			ids[match.ID] = true
		}
	}
	n.ids = slices.Sorted(maps.Keys(ids))
}

// files are all terms, by path in the image.
func (a allNotices) files() map[string][]byte {
	all := map[string][]byte{}
	for _, n := range a {
		maps.Copy(all, n.files)
	}
	return all
}
