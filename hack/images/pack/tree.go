// SPDX-License-Identifier: Apache-2.0

// Package pack packs files into container images and archives without a container engine. The same files produce the
// same bytes.
package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// A Tree is the content of a layer, by absolute path. Everything belongs to root, and only root can change it. Parent
// folders are created automatically.
type Tree struct {
	Files       map[string][]byte
	Executables map[string]bool
	Links       map[string]string // symbolic links and their targets
	Open        []string          // folders that all users may write to, such as /tmp
}

// Tar returns the tree as a tar file. The same tree produces the same bytes.
func (t Tree) Tar(created time.Time) ([]byte, error) {
	headers := t.headers(created)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := w.WriteHeader(headers[name]); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", name, err)
		}
		if _, err := w.Write(t.Files[name]); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("ending a layer: %w", err)
	}
	return out.Bytes(), nil
}

// headers returns the headers of all entries and their parent folders, by absolute path.
func (t Tree) headers(created time.Time) map[string]*tar.Header {
	headers := map[string]*tar.Header{}
	put := func(name string, h tar.Header) {
		h.ModTime = created
		h.Format = tar.FormatPAX
		headers[name] = &h
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if headers[dir] == nil {
				headers[dir] = &tar.Header{
					Typeflag: tar.TypeDir,
					Name:     dir[1:] + "/",
					Mode:     0o755,
					ModTime:  created,
					Format:   tar.FormatPAX,
				}
			}
		}
	}
	for name, content := range t.Files {
		put(name, tar.Header{
			Typeflag: tar.TypeReg,
			Name:     name[1:],
			Mode:     int64(t.mode(name)),
			Size:     int64(len(content)),
		})
	}
	for name, target := range t.Links {
		put(name, tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: target, Mode: 0o777})
	}
	for _, name := range t.Open {
		put(name, tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: 0o1777})
	}
	return headers
}

func (t Tree) mode(name string) os.FileMode {
	if t.Executables[name] {
		return 0o755
	}
	return 0o644
}

// Write writes the tree to a folder.
func (t Tree) Write(folder string) error {
	for name, content := range t.Files {
		target := filepath.Join(folder, name)
		if err := makeParent(target); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, t.mode(name)); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	for name, target := range t.Links {
		link := filepath.Join(folder, name)
		if err := makeParent(link); err != nil {
			return err
		}
		if err := os.Symlink(target, link); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	for _, name := range t.Open {
		dir := filepath.Join(folder, name)
		// The umask applies to MkdirAll, but not to Chmod.
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
	}
	return nil
}

func makeParent(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", file, err)
	}
	return nil
}
