// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// largestFile is more than the size of the largest recording that tests read.
const largestFile = 1 << 20

// TestNoProgramIsCommitted finds build output in the repository: files that are much larger than any source.
func TestNoProgramIsCommitted(t *testing.T) {
	g := NewWithT(t)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = ".."
	out, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		info, err := os.Stat(filepath.Join("..", file))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Size()).To(BeNumerically("<", largestFile), "remove %s from the repository", file)
	}
}
