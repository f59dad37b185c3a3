// SPDX-License-Identifier: Apache-2.0

// Package docs_test checks the documentation: links must resolve, and generated pages must match the code.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	root = ".."
	api  = "../api/v1beta4"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// allPages returns the pages by their paths in the repository.
func allPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CHANGELOG.md"}
	NewWithT(t).Expect(filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, filepath.Join("docs", path))
		}
		return err
	})).To(Succeed())
	return pages
}

func TestLinksResolve(t *testing.T) {
	for _, page := range allPages(t) {
		t.Run(page, func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(filepath.Join(root, page))
			g.Expect(err).NotTo(HaveOccurred())

			for _, match := range link.FindAllStringSubmatch(string(content), -1) {
				target := filepath.Join(root, filepath.Dir(page), match[1])
				g.Expect(target).To(Or(BeAnExistingFile(), BeADirectory()))
			}
		})
	}
}

func TestEveryConditionIsDocumented(t *testing.T) {
	g := NewWithT(t)
	var pages strings.Builder
	kinds, err := filepath.Glob(filepath.Join("reference", "kinds", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range kinds {
		content, err := os.ReadFile(kind)
		g.Expect(err).NotTo(HaveOccurred())
		pages.Write(content)
	}

	var conditions []string
	for _, c := range documentedConstants(t, "Condition") {
		conditions = append(conditions, c.value)
	}

	g.Expect(conditions).NotTo(BeEmpty())
	g.Expect(missing(conditions, pages.String())).To(BeEmpty(), "docs/reference/kinds")
}

// missing returns the words that a page does not contain as code.
func missing(words []string, page string) []string {
	var found []string
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") {
			found = append(found, word)
		}
	}
	return found
}
