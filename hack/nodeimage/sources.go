// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hashOf returns a hash of the names and contents of the files at the paths, which may be folders. It excludes tests
// and files that git, editors and builds create.
func hashOf(root string, paths ...string) (string, error) {
	h := sha256.New()
	for _, p := range paths {
		top := filepath.Join(root, filepath.FromSlash(p))
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := e.Name()
			switch {
			case e.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && name != "."):
				return fs.SkipDir
			case e.IsDir(), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "."):
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			_, _ = fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(relative), len(content))
			h.Write(content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("reading the sources: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// recipe returns a hash of the source of this program and of the files in its folders.
func (b *builder) recipe() (string, error) {
	files, err := filepath.Glob(filepath.Join(b.root, "hack/nodeimage/*.go"))
	if err != nil {
		return "", err
	}
	paths := []string{"hack/nodeimage/node", "hack/nodeimage/system", "hack/images/pack"}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			paths = append(paths, "hack/nodeimage/"+filepath.Base(file))
		}
	}
	slices.Sort(paths)
	return hashOf(b.root, paths...)
}
