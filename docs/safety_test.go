// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var testLink = regexp.MustCompile("\\[`(Test\\w+)`\\]\\(([^)]+_test\\.go)\\)")

// Every promise in the table on safety must name the tests that verify it.
func TestSafetyRowsLinkTests(t *testing.T) {
	g := NewWithT(t)
	page := filepath.Join("concepts", "failure-modes.md")
	content, err := os.ReadFile(page)
	g.Expect(err).NotTo(HaveOccurred())

	rows := 0
	for line := range strings.Lines(string(content)) {
		if !isRow(line) {
			continue
		}
		rows++
		links := testLink.FindAllStringSubmatch(line, -1)
		g.Expect(links).NotTo(BeEmpty(), "no test in %s", line)
		for _, l := range links {
			g.Expect(declaresTest(t, filepath.Join(filepath.Dir(page), l[2]), l[1])).To(BeTrue(), "%s in %s", l[1], l[2])
		}
	}
	g.Expect(rows).To(BeNumerically(">", 20))
}

// isRow reports whether a line is a row of a table, but not its header or delimiter.
func isRow(line string) bool {
	return strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| Failure |")
}

func declaresTest(t *testing.T, path, name string) bool {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(source), "\nfunc "+name+"(")
}
