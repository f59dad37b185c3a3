// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAPageIsSortedAsIfAllWere(t *testing.T) {
	g := NewWithT(t)
	source := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 2, 3, 10, 1000} {
		for _, distinct := range []int{1, 3, 1000} {
			items := make([]int, size)
			for i := range items {
				items[i] = source.IntN(distinct)
			}
			sorted := slices.Clone(items)
			slices.Sort(sorted)
			for _, page := range [][2]int{{0, size}, {0, size / 3}, {size / 3, size / 2}, {size - size/4, size}, {size, size}} {
				arranged := slices.Clone(items)
				sortRange(arranged, page[0], page[1], func(a, b *int) int { return cmp.Compare(*a, *b) })
				g.Expect(arranged[page[0]:page[1]]).To(Equal(sorted[page[0]:page[1]]), "%d of %d values, %v", size, distinct, page)
			}
		}
	}
}
