// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	anchored = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	unslug   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug returns the anchor that GitHub generates for a heading.
func slug(title string) string {
	title = unslug.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(title, "$1")), "")
	return strings.ReplaceAll(title, " ", "-")
}

// anchorsOf returns the anchors of a page.
func anchorsOf(g *WithT, path string) []string {
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(content), ""), -1) {
		all = append(all, slug(match[1]))
	}
	return all
}

func TestAnchorsOfLinksExist(t *testing.T) {
	for _, page := range allPages(t) {
		t.Run(page, func(t *testing.T) {
			g := NewWithT(t)
			for _, match := range anchored.FindAllStringSubmatch(readPage(t, page), -1) {
				target := filepath.Join(root, page)
				if match[1] != "" {
					target = filepath.Join(root, filepath.Dir(page), match[1])
				}
				if filepath.Ext(target) != ".md" {
					continue
				}
				g.Expect(slices.Contains(anchorsOf(g, target), match[2])).To(BeTrue(), "%s#%s", match[1], match[2])
			}
		})
	}
}
