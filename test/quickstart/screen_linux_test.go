// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// TestTheTreeOfObjectsDoesNotWrap checks the tree of clusterctl, which is wider than most terminals and padded with
// spaces.
func TestTheTreeOfObjectsDoesNotWrap(t *testing.T) {
	g := NewWithT(t)
	_, out := terminal(t)
	g.Expect(unix.IoctlSetWinsize(int(out.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 30, Row: 10})).To(Succeed())
	tree := []byte("NAME           READY REASON          MESSAGE    \n└─Workers                                       \n")

	q := newQuickstart(options{}, out)
	g.Expect(q.screen.table(tree)).To(Equal("NAME           READY REASON          MESSAGE\n└─Workers\n"),
		"what a program reads is whole")
	q.interactive = true
	g.Expect(q.screen.table(tree)).To(Equal("NAME           READY REASON  …\n└─Workers\n"))
}
