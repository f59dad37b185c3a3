// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	. "github.com/onsi/gomega"

	"strings"
	"testing"
)

func TestFilters(t *testing.T) {
	g := NewWithT(t)

	g.Expect(allOf(is("name", "my vApp+1&x"),
		is("isVAppTemplate", "false"))).To(Equal("name==my%20vApp%2B1%26x;isVAppTemplate==false"))
	g.Expect(anyOf(is("id", "a"), is("id", "b"))).To(Equal("(id==a,id==b)"))
	for _, name := range []string{"a;b", "a,b", "a(b", "a*", "a=b", "a!b", "a<b", `a"b`, ""} {
		g.Expect(checkName("vApp", name, "")).To(MatchError(ErrInvalid), name)
	}
	g.Expect(checkName("vApp", "Prod cluster_1.a-b", "")).To(Succeed())
}

func TestFiltersAreCutIntoChunks(t *testing.T) {
	g := NewWithT(t)
	values := []string{strings.Repeat("a", 30), strings.Repeat("b", 30), strings.Repeat("c", 30)}

	chunks := anyOfChunks("n", values, 70)

	g.Expect(chunks).To(HaveLen(2))
	g.Expect(chunks[0]).To(HaveLen(2))
	g.Expect(anyOfChunks("n", nil, 70)).To(BeEmpty())
	g.Expect(anyOfChunks("n", []string{strings.Repeat("x", 100)}, 70)).To(HaveLen(1))
}
