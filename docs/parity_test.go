// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// promised is the number of promises of each predecessor, by page and section. Each promise is a row of the page.
var promised = map[string]map[string]int{
	// The releases of VMware's CPI, its known issues, and requests of its users in public threads.
	"migrate-from-cpi.md": {
		"1.4.1": 4,
		"1.4.0": 8,
		"1.3.0": 2,
		"1.2.0": 3,
		"1.1.3": 1,
		"1.1.2": 1,
		"1.1.1": 2,
		"1.1.0": 7,
		"1.0.2": 1,
		"1.0.1": 2,
		"1.0.0": 1,
		"KI":    3,
		"W":     35,
	},
	// The introduction of the vSphere CPI.
	"migrate-from-vsphere-cpi.md": {"VS": 34},
	// The sections of the description of CloudStack Kubernetes Provider, and requests of its users in public threads.
	"migrate-from-cloudstack-provider.md": {"D": 9, "P": 7, "N": 10, "M": 5, "B": 6, "W": 16},
}

var (
	parityRow = regexp.MustCompile(`^\| ([A-Z0-9.]+)-(\d+) \|(.*)\|([^|]*)\|$`)
	// proof matches a test, identified by folder and function.
	proof = regexp.MustCompile("`([a-zA-Z0-9/_-]+):((?:Test|Fuzz)\\w+)`")
)

// TestParity checks that every promise has an answer. Every answer must name an existing test, or explain in a sentence
// why the promise is not kept.
func TestParity(t *testing.T) {
	for page, rows := range promised {
		t.Run(page, func(t *testing.T) { holdParity(t, page, rows) })
	}
}

func holdParity(t *testing.T, name string, rows map[string]int) {
	t.Helper()
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join("networking", name))
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for line := range strings.SplitSeq(string(page), "\n") {
		cells := parityRow.FindStringSubmatch(line)
		if cells == nil {
			g.Expect(line).NotTo(MatchRegexp(`^\| [A-Z0-9.]+-\d`), "a row that cannot be parsed")
			continue
		}
		found[cells[1]]++
		g.Expect(cells[2]).To(Equal(fmt.Sprint(found[cells[1]])), "rows of %s in order", cells[1])
		proofs := proof.FindAllStringSubmatch(cells[4], -1)
		if len(proofs) == 0 {
			g.Expect(cells[4]).To(MatchRegexp(`^ (No test|Not built): .{10,}`), line)
		}
		for _, p := range proofs {
			g.Expect(testsIn(t, p[1])).To(HaveKey(p[2]), "%s-%s names a test of %s", cells[1], cells[2], p[1])
		}
	}
	g.Expect(found).To(Equal(rows))
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testsIn returns the test functions of a folder.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, match := range testFunction.FindAllStringSubmatch(string(content), -1) {
			found[match[1]] = true
		}
	}
	return found
}
