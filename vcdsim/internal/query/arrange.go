// SPDX-License-Identifier: Apache-2.0

package query

import "slices"

// arrange sorts the items from an index to another as if all were sorted, which costs little more than to look at each
// once. The others are in no order.
func arrange[T any](items []T, from, to int, compare func(a, b *T) int) {
	divide(items, from, compare)
	divide(items[from:], to-from, compare)
	slices.SortFunc(items[from:to], func(a, b T) int { return compare(&a, &b) })
}

// divide puts the first n items of the order before the others.
func divide[T any](items []T, n int, compare func(a, b *T) int) {
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

// partition puts the items that come before one of them at its left and returns where that one is.
func partition[T any](items []T, compare func(a, b *T) int) int {
	last := len(items) - 1
	middle := len(items) / 2
	for _, pair := range [][2]int{{0, middle}, {middle, last}, {0, middle}} { // the median of three is in the middle
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
