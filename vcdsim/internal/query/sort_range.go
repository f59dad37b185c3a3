// SPDX-License-Identifier: Apache-2.0

package query

import "slices"

// sortRange sorts the items from one index to another as if all items were sorted. The cost is little more than that of
// one pass over the items. The order of the other items is undefined.
func sortRange[T any](items []T, from, to int, compare func(a, b *T) int) {
	selectFirst(items, from, compare)
	selectFirst(items[from:], to-from, compare)
	slices.SortFunc(items[from:to], func(a, b T) int { return compare(&a, &b) })
}

// selectFirst moves the n smallest items to the front, in any order.
func selectFirst[T any](items []T, n int, compare func(a, b *T) int) {
	for 0 < n && n < len(items) {
		pivot := partition(items, compare)
		switch {
		case n <= pivot:
			items = items[:pivot]
		default:
			items = items[pivot+1:]
			n -= pivot + 1
		}
	}
}

// partition selects a pivot, moves the smaller items to its left, and returns its index.
func partition[T any](items []T, compare func(a, b *T) int) int {
	last := len(items) - 1
	middle := len(items) / 2
	for _, pair := range [][2]int{{0, middle}, {middle, last}, {0, middle}} { // moves the median of three to the middle
		if compare(&items[pair[1]], &items[pair[0]]) < 0 {
			items[pair[0]], items[pair[1]] = items[pair[1]], items[pair[0]]
		}
	}
	items[middle], items[last] = items[last], items[middle]
	left := 0
	for i := range last {
		if compare(&items[i], &items[last]) < 0 {
			items[i], items[left] = items[left], items[i]
			left++
		}
	}
	items[left], items[last] = items[last], items[left]
	return left
}
