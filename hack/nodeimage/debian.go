// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/hack/images/pack"
)

// A debian is a root file system that images copy programs from, including the libraries that they are linked to.
type debian struct{ root string }

// libraries returns the folder of shared libraries.
func libraries() string {
	if runtime.GOARCH == "arm64" {
		return "/usr/lib/aarch64-linux-gnu"
	}
	return "/usr/lib/x86_64-linux-gnu"
}

// tree returns a tree with the links of a merged /usr, which programs use to find their libraries.
func (debian) tree() pack.Tree {
	t := newTree()
	t.Links["/bin"] = "usr/bin"
	t.Links["/sbin"] = "usr/sbin"
	t.Links["/lib"] = "usr/lib"
	t.Links["/lib64"] = "usr/lib64"
	t.Open = []string{"/tmp"}
	return t
}

// add copies programs and the libraries that they are linked to.
func (d debian) add(t *pack.Tree, programs ...string) error {
	for _, p := range programs {
		if err := d.addFile(t, p); err != nil {
			return fmt.Errorf("taking %s from the root filesystem: %w", p, err)
		}
	}
	return nil
}

// addFile copies a file, its libraries and its loader, unless the tree already contains it.
func (d debian) addFile(t *pack.Tree, name string) error {
	if _, ok := t.Files[name]; ok {
		return nil
	}
	file, err := d.resolve(name)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	t.Files[name] = content
	t.Executables[name] = true
	needed, err := linked(file)
	if err != nil {
		return err
	}
	for _, n := range needed {
		if err := d.addFile(t, n); err != nil {
			return err
		}
	}
	return nil
}

// maxLinks is the maximum number of links to a file.
const maxLinks = 10

// resolve resolves the links of a file relative to the root of the file system.
func (d debian) resolve(name string) (string, error) {
	for range maxLinks {
		file := filepath.Join(d.root, name)
		target, err := os.Readlink(file)
		if err != nil {
			return file, nil //nolint:nilerr // not a link
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		name = target
	}
	return "", fmt.Errorf("%s: %w", name, errors.New("too many links"))
}

// linked returns the paths of the libraries and the loader that an ELF file is linked to.
func linked(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range names {
		if !strings.HasPrefix(n, "ld-linux") { // a library, too, but with its own path below
			found = append(found, path.Join(libraries(), n))
		}
	}
	for _, section := range f.Progs {
		if section.Type != elf.PT_INTERP {
			continue
		}
		loader, err := io.ReadAll(section.Open())
		if err != nil {
			return nil, err
		}
		found = append(found, "/usr"+strings.TrimRight(string(loader), "\x00"))
	}
	return found, nil
}

// addMatching copies the files that match a pattern, and their libraries. Links are preserved.
func (d debian) addMatching(t *pack.Tree, pattern string) error {
	found, err := filepath.Glob(filepath.Join(d.root, pattern))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no %s in the root filesystem: %w", pattern, fs.ErrNotExist)
	}
	var errs []error
	for _, file := range found {
		name := strings.TrimPrefix(file, d.root)
		if target, err := os.Readlink(file); err == nil {
			t.Links[name] = target
			continue
		}
		errs = append(errs, d.add(t, name))
	}
	return errors.Join(errs...)
}
