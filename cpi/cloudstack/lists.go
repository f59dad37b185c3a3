// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"net/netip"
	"slices"
	"strings"
)

// without returns the elements for which drop returns false.
func without[T any](all []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), drop)
}

// minus returns the elements of all that are not in others.
func minus(all, others []string) []string {
	drop := make(map[string]bool, len(others))
	for _, x := range others {
		drop[x] = true
	}
	return without(all, func(x string) bool { return drop[x] })
}

func contains(all []netip.Addr, text string) bool {
	return slices.ContainsFunc(all, func(a netip.Addr) bool { return a.String() == text })
}

func joined(all []netip.Prefix) string {
	var out []string
	for _, c := range all {
		out = append(out, c.String())
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// cidrs returns the CIDRs of a list, sorted and without duplicates.
func cidrs(list string) []string {
	out := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(out)
	return slices.Compact(out)
}
