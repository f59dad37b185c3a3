// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// placeholder matches text that readers replace, such as <name>.
var placeholder = regexp.MustCompile(`<[a-zA-Z][a-zA-Z -]*>`)

func TestShellBlocksAreValid(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, page := range allPages(t) {
		t.Run(page, func(t *testing.T) {
			for _, block := range blocks(readPage(t, page)) {
				check := exec.CommandContext(t.Context(), bash, "-n")
				check.Stdin = strings.NewReader(placeholder.ReplaceAllString(block, "X"))

				problem, err := check.CombinedOutput()

				NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s\n%s", problem, block)
			}
		})
	}
}
