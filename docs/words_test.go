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

var (
	// namesOfRows matches the name in the first column of a reference page.
	namesOfRows = regexp.MustCompile("(?m)^\\| `([^`]+)`")
	// wordsOf matches the words of a name: --sync-period, last_seconds, WaitingForFinalCheck.
	wordsOf = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	// privateWords matches words that are ambiguous or unknown to users of Kubernetes and VCD.
	privateWords = regexp.MustCompile(
		`(?i)^(look(s|ed)?|places?|guard(s|ed)?|turn(s|ed)?|tell(s|er)?|told|somebody|nobody|whoever|anybody|` +
			`compan(y|ies)|visit(s|ed)?|ledger|edition|hiccup|aside)$`)
)

// TestNamesUseStandardTerms reads the names of flags, metrics, labels, conditions, events and annotations.
func TestNamesUseStandardTerms(t *testing.T) {
	for _, page := range []string{
		"annotations.md", "cloudstack-annotations.md", "conditions.md", "events.md", "flags.md", "metrics.md",
		"object-annotations.md", "vcdsim-configuration.md",
	} {
		t.Run(page, func(t *testing.T) {
			g := NewWithT(t)
			text, err := os.ReadFile(filepath.Join("reference", page))
			g.Expect(err).NotTo(HaveOccurred())
			names := namesOfRows.FindAllStringSubmatch(string(text), -1)
			g.Expect(names).NotTo(BeEmpty())
			for _, name := range names {
				public := strings.ReplaceAll(name[1], "in-place", "") // a term of Cluster API
				for _, word := range wordsOf.FindAllString(public, -1) {
					g.Expect(privateWords.MatchString(word)).To(BeFalse(), "%s has the word %s", name[1],
						strings.ToLower(word))
				}
			}
		})
	}
}
