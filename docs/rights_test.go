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

// right matches the name of a VCD right in a program.
var right = regexp.MustCompile(
	`"((?:Access|Certificate|General|IP Spaces|Organization vDC|Private IP Spaces|vApp)[^":]*: [A-Z][^"]*)"`)

// The page on permissions must contain each right in messages under the same name.
func TestRightsInMessagesAreDocumented(t *testing.T) {
	g := NewWithT(t)
	page := readPage(t, "docs/security/permissions.md")
	found := 0
	for _, folder := range []string{"internal/vcd", "internal/edge", "internal/lb", "cpi/vcd", "controllers/machine"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			g.Expect(err).NotTo(HaveOccurred())
			for _, match := range right.FindAllStringSubmatch(string(source), -1) {
				found++
				g.Expect(strings.Contains(page, match[1])).To(BeTrue(), "%s in %s", match[1], name)
			}
		}
	}
	g.Expect(found).To(BeNumerically(">", 3))
}
