// SPDX-License-Identifier: Apache-2.0

package fiql

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

func TestFilters(t *testing.T) {
	g := NewWithT(t)

	g.Expect(AllOf(Is("name", "my vApp+1&x"),
		Is("isVAppTemplate", "false"))).To(Equal("name==my%20vApp%2B1%26x;isVAppTemplate==false"))
	g.Expect(AnyOf(Is("id", "a"), Is("id", "b"))).To(Equal("(id==a,id==b)"))
	g.Expect(AllOf(Like("name", "a b*c*"), HasMetadata("image role", "a: b"))).To(
		Equal("name==a%20b*c*;metadata:image%20role==STRING:a%3A%20b"))
	for _, name := range []string{"a;b", "a,b", "a(b", "a*", "a=b", "a!b", "a<b", `a"b`, ""} {
		g.Expect(CheckName("vApp", name, "")).To(MatchError(failure.ErrInvalid), name)
	}
	g.Expect(CheckName("vApp", "Prod cluster_1.a-b", "")).To(Succeed())
}

func TestFiltersAreSplitIntoChunks(t *testing.T) {
	g := NewWithT(t)
	values := []string{strings.Repeat("a", 30), strings.Repeat("b", 30), strings.Repeat("c", 30)}

	chunks := AnyOfChunks("n", values, 70)

	g.Expect(chunks).To(HaveLen(2))
	g.Expect(chunks[0]).To(HaveLen(2))
	g.Expect(AnyOfChunks("n", nil, 70)).To(BeEmpty())
	g.Expect(AnyOfChunks("n", []string{strings.Repeat("x", 100)}, 70)).To(HaveLen(1))
}
