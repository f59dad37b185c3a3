// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	fence  = regexp.MustCompile("(?ms)^( *)```([a-z]+)\n(.*?)^ *```$")
	prompt = regexp.MustCompile(`(?m)^\$ (.*)$`)
)

// A block is a fenced code block on a page.
type block struct {
	language, text string
}

// first returns the first line, which identifies a block in the tables.
func (b block) first() string {
	line, _, _ := strings.Cut(b.text, "\n")
	return line
}

// pages returns the paths in the repository of all pages with shell commands.
func pages(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	paths, err := filepath.Glob(filepath.Join(root, "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})).To(Succeed())
	var found []string
	for _, path := range paths {
		if len(shellOf(t, path)) == 0 {
			continue
		}
		page, err := filepath.Rel(root, path)
		g.Expect(err).NotTo(HaveOccurred())
		found = append(found, page)
	}
	return found
}

// blocksOf returns the blocks on a page without the indentation of enclosing lists.
func blocksOf(t *testing.T, path string) []block {
	t.Helper()
	content, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var all []block
	for _, match := range fence.FindAllStringSubmatch(string(content), -1) {
		text := strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n")[1:]
		all = append(all, block{match[2], text})
	}
	return all
}

// shellOf returns the blocks of shell commands on a page. Console blocks are reduced to the commands after prompts.
func shellOf(t *testing.T, path string) []block {
	t.Helper()
	var all []block
	for _, b := range blocksOf(t, path) {
		switch {
		case slices.Contains([]string{"sh", "bash", "shell"}, b.language):
			all = append(all, b)
		case b.language == "console":
			var lines []string
			for _, match := range prompt.FindAllStringSubmatch(b.text, -1) {
				lines = append(lines, match[1])
			}
			all = append(all, block{b.language, strings.Join(lines, "\n") + "\n"})
		}
	}
	return all
}
