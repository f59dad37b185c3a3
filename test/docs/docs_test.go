// SPDX-License-Identifier: Apache-2.0

// Package docs_test runs the shell commands in the README and the documentation as printed, in the order of each page.
// It uses a real API server, Cluster API, this provider and a simulated VCD. Commands that cannot run here are listed
// with reasons.
package docs_test

import (
	"flag"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
)

var (
	asPrinted = flag.Bool("as-printed", false, "run all blocks with a management cluster (minutes)")
	printed   = flag.Bool("output", false, "log the output of the blocks")
)

func TestMain(m *testing.M) { testtime.Main(m) }

func TestEveryListedBlockExists(t *testing.T) {
	g := NewWithT(t)
	root, err := framework.Root()
	g.Expect(err).NotTo(HaveOccurred())
	all := pages(t, root)
	for page, blocks := range notRun() {
		g.Expect(all).To(ContainElement(page))
		var firsts []string
		for _, b := range shellOf(t, filepath.Join(root, page)) {
			firsts = append(firsts, b.first())
		}
		for first, reason := range blocks {
			g.Expect(firsts).To(ContainElement(first), "%s has no such block", page)
			g.Expect(len(reason)).To(BeNumerically(">", 10), "%s: %s needs a reason", page, first)
		}
	}
	for page := range setups() {
		g.Expect(all).To(ContainElement(page))
	}
}

func TestShellBlocksRunAsPrinted(t *testing.T) {
	if !*asPrinted {
		t.Skip("-as-printed is not set")
	}
	w := newReaderEnv(t)
	for _, page := range w.sortPages(pages(t, w.Root)) {
		blocks := toRun(t, w.Root, page)
		if len(blocks) == 0 || page == firstClusterPage { // TestFirstClusterPageRunsAsPrinted runs this page.
			continue
		}
		if !t.Run(page, func(t *testing.T) { w.run(t, page, blocks) }) && slices.Contains(setupPages(), page) {
			t.Fatalf("other pages need the cluster of %s", page)
		}
	}
}

// toRun returns the blocks on a page that can run here.
func toRun(t *testing.T, root, page string) []block {
	t.Helper()
	blocks := shellOf(t, filepath.Join(root, page))
	return slices.DeleteFunc(blocks, func(b block) bool { return notRun()[page][b.first()] != "" })
}
