// Package docs_test checks the documentation: links lead somewhere, and every reason of a condition is explained.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	root = ".."
	api  = "../api/v1beta4"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md"}
	g := NewWithT(t)
	g.Expect(filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, filepath.Join("docs", path))
		}
		return err
	})).To(Succeed())

	for _, page := range pages {
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

func TestEveryReasonIsExplained(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join("guides", "troubleshooting.md"))
	g.Expect(err).NotTo(HaveOccurred())

	reasons := constants(t, "Reason")

	g.Expect(reasons).NotTo(BeEmpty())
	g.Expect(missing(reasons, string(page))).To(BeEmpty(), "docs/guides/troubleshooting.md")
}

func TestEveryConditionIsExplained(t *testing.T) {
	g := NewWithT(t)
	var pages strings.Builder
	kinds, err := filepath.Glob(filepath.Join("guides", "kinds", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range kinds {
		content, err := os.ReadFile(kind)
		g.Expect(err).NotTo(HaveOccurred())
		pages.Write(content)
	}

	conditions := constants(t, "Condition")

	g.Expect(conditions).NotTo(BeEmpty())
	g.Expect(missing(conditions, pages.String())).To(BeEmpty(), "docs/guides/kinds")
}

// missing are the words that a page does not mention as code.
func missing(words []string, page string) []string {
	var found []string
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") {
			found = append(found, word)
		}
	}
	return found
}

// constants are the values of the API's string constants whose names have the suffix.
func constants(t *testing.T, suffix string) []string {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(api, "*.go"))
	g.Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 && strings.HasSuffix(spec.Names[0].Name, suffix) {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					value, err := strconv.Unquote(literal.Value)
					g.Expect(err).NotTo(HaveOccurred())
					found = append(found, value)
				}
			}
			return true
		})
	}
	return found
}
