// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestGoFilesNameTheirLicense checks the Go files of all modules. Generated files need no header.
func TestGoFilesNameTheirLicense(t *testing.T) {
	g := NewWithT(t)
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "*.go")
	list.Dir = ".."
	out, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	files := strings.Fields(string(out))
	g.Expect(files).NotTo(BeEmpty())

	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("..", file))
		g.Expect(err).NotTo(HaveOccurred())
		if !generated.Match(text) {
			g.Expect(string(text)).To(HavePrefix("// SPDX-License-Identifier: Apache-2.0\n\n"),
				"add the licence to %s", file)
		}
	}
}
