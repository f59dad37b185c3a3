// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRewrite(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before string
		after  string
		calls  bool
	}{
		{
			name:   "each field of a literal that spans lines gets a line",
			before: "var p = point{x: 1, y: 2,\n\tz: 3}",
			after:  "var p = point{\n\tx: 1,\n\ty: 2,\n\tz: 3,\n}",
		},
		{
			name:   "a literal on one line stays",
			before: "var p = point{x: 1, y: 2}",
			after:  "var p = point{x: 1, y: 2}",
		},
		{
			name:   "a list of words stays",
			before: "var p = []string{\n\t\"a\", \"b\",\n\t\"c\",\n}",
			after:  "var p = []string{\n\t\"a\", \"b\",\n\t\"c\",\n}",
		},
		{
			name:   "each variable gets a statement",
			before: "func f() {\n\ta, b := 1, 2\n\t_, _ = a, b\n}",
			after:  "func f() {\n\ta := 1\n\tb := 2\n\t_ = a\n\t_ = b\n}",
		},
		{
			name:   "only the new variable is declared",
			before: "func f(a int) int {\n\ta, b := 1, 2\n\treturn a + b\n}",
			after:  "func f(a int) int {\n\ta = 1\n\tb := 2\n\treturn a + b\n}",
		},
		{
			name:   "a swap stays",
			before: "func f(a, b int) int {\n\ta, b = b, a\n\treturn a - b\n}",
			after:  "func f(a, b int) int {\n\ta, b = b, a\n\treturn a - b\n}",
		},
		{
			name:   "a call that may read earlier assigned variables stays",
			before: "func (p *point) f() {\n\tp.x, p.y = 1, p.sum()\n}",
			after:  "func (p *point) f() {\n\tp.x, p.y = 1, p.sum()\n}",
		},
		{
			name:   "such a call is split on request",
			before: "func (p *point) f() {\n\tp.x, p.y = 1, p.sum()\n}",
			after:  "func (p *point) f() {\n\tp.x = 1\n\tp.y = p.sum()\n}",
			calls:  true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			path := filepath.Join(root, "p.go")
			g.Expect(os.WriteFile(path, []byte("package p\n\n"+tc.before+"\n"), 0o600)).To(Succeed())

			err := run(options{root: root, write: true, calls: tc.calls}, t.Output())

			g.Expect(err).NotTo(HaveOccurred())
			got, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.TrimPrefix(string(got), "package p\n\n")).To(Equal(tc.after + "\n"))
		})
	}
}

func TestReportCountsEachLocation(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	text := `package p

type inner struct{}

type outer struct{ *inner }

var (
	p = []point{
		{x: 1}, {x: 2},
	}
	a, b, c int
)

func f() {
	a, b, c = 1, 2, 3
}
`
	g.Expect(os.WriteFile(filepath.Join(root, "p.go"), []byte(text), 0o600)).To(Succeed())
	var out strings.Builder

	g.Expect(run(options{root: root, list: true}, &out)).To(Succeed())

	g.Expect(out.String()).To(And(
		ContainSubstring("p.go:5: embeds *inner"),
		ContainSubstring("p.go:8: literal with several elements on one line"),
		ContainSubstring("p.go:15: assigns 3 values"),
	))
}
