// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// TestTreeOfObjectsDoesNotWrap checks the output of clusterctl describe, which is wider than most terminals and padded
// with spaces.
func TestTreeOfObjectsDoesNotWrap(t *testing.T) {
	g := NewWithT(t)
	_, out := terminal(t)
	g.Expect(unix.IoctlSetWinsize(int(out.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 30, Row: 10})).To(Succeed())
	tree := []byte("NAME           READY REASON          MESSAGE    \n└─Workers                                       \n")

	q := newQuickstart(options{}, out)
	g.Expect(q.screen.table(tree)).To(Equal("NAME           READY REASON          MESSAGE\n└─Workers\n"),
		"lines are not truncated without a terminal")
	q.interactive = true
	g.Expect(q.screen.table(tree)).To(Equal("NAME           READY REASON  …\n└─Workers\n"))
}
