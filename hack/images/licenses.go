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

// licenseName matches names of files with license terms.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|copyright|patents|unlicense)([-.].*)?$`)

// licenseFolder is the folder of licenses in images.
const licenseFolder = "/licenses"

// minCoverage is the minimum share of a text, in percent, that must match a license to identify it.
const minCoverage = 75

// A moduleLicenses contains the licenses of a module.
type moduleLicenses struct {
	files map[string][]byte // by path in the image
	ids   []string          // SPDX IDs, sorted; empty if none was recognized
}

// licenses returns the licenses of the modules that a program is linked from, by path@version. "std" is Go's standard
// library and "main" this project. Only the folders of linked packages and their parents are searched.
func (b build) licenses(ctx context.Context, p program, arch string) (licensesByModule, error) {
	packages, err := b.packages(ctx, p, arch)
	if err != nil {
		return nil, err
	}
	goRoot, err := b.goRoot(ctx)
	if err != nil {
		return nil, err
	}
	found := licensesByModule{}
	seen := map[string]bool{}
	for _, pkg := range packages {
		name, top, dir := moduleOf(pkg, goRoot)
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

// moduleOf returns the module of a package, the root folder of the module, and the folder in which the search for
// licenses starts.
func moduleOf(pkg goPackage, goRoot string) (name, top, dir string) {
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

// Names of modules without a version.
const (
	stdlib     = "std"
	mainModule = "main"
)

// licensesByModule contains the licenses by path@version of the module.
type licensesByModule map[string]*moduleLicenses

// add adds the licenses in a folder of a module.
func (a licensesByModule) add(name, top, dir string) error {
	if a[name] == nil {
		a[name] = &moduleLicenses{files: map[string][]byte{}}
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
		a[name].files[path.Join(licenseFolder, licenseSubfolder(name), filepath.ToSlash(below))] = content
		a[name].identify(content)
	}
	return nil
}

// licenseSubfolder returns the folder of a module's licenses. Those of this project are at the top level.
func licenseSubfolder(name string) string {
	if name == mainModule {
		return ""
	}
	return path.Join("third-party", name)
}

func (n *moduleLicenses) identify(text []byte) {
	coverage := licensecheck.Scan(text)
	if coverage.Percent < minCoverage {
		return
	}
	ids := map[string]bool{}
	for _, id := range n.ids {
		ids[id] = true
	}
	for _, match := range coverage.Match {
		if !strings.HasPrefix(match.ID, "Google") { // licensecheck's name for Go's patent grant, which is unknown to SPDX
			ids[match.ID] = true
		}
	}
	n.ids = slices.Sorted(maps.Keys(ids))
}

// files returns all licenses by path in the image.
func (a licensesByModule) files() map[string][]byte {
	all := map[string][]byte{}
	for _, n := range a {
		maps.Copy(all, n.files)
	}
	return all
}
