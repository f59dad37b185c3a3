// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// systemDefault is the sizing policy that VCD adds to each VDC.
const systemDefault = "System Default"

// aliases number the objects of a site by kind, in the order of their first use.
type aliases struct {
	byID  map[string]alias
	count map[string]int
}

func newAliases() *aliases {
	return &aliases{byID: map[string]alias{}, count: map[string]int{}}
}

// assign returns a new alias for an object of a kind.
func (a *aliases) assign(kind, id string) alias {
	a.count[kind]++
	given := alias(kind + "-" + strconv.Itoa(a.count[kind]))
	a.byID[id] = given
	return given
}

// of returns the alias of an object, or the empty string.
func (a *aliases) of(id string) alias { return a.byID[id] }

// inOrder sorts objects by name, and numbers within names by value. The aliases in a file are then in the order of the
// site's objects, and an export of the simulated site results in the same aliases.
func inOrder[T any](all []T, nameOf func(T) string) []T {
	slices.SortStableFunc(all, func(x, y T) int { return compareNatural(nameOf(x), nameOf(y)) })
	return all
}

var numbersAndText = regexp.MustCompile(`[0-9]+|[^0-9]+`)

func compareNatural(x, y string) int {
	return slices.CompareFunc(numbersAndText.FindAllString(x, -1), numbersAndText.FindAllString(y, -1), comparePart)
}

func comparePart(x, y string) int {
	if isDigit(x[0]) && isDigit(y[0]) {
		value := func(s string) string { return strings.TrimLeft(s, "0") }
		if c := cmp.Compare(len(value(x)), len(value(y))); c != 0 {
			return c
		}
	}
	return cmp.Compare(x, y)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// kubernetesInName matches a Kubernetes version, such as v1.33.1, in the name of a template. It does not match part of
// a longer number.
var kubernetesInName = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])v(1\.[0-9]{1,2}\.[0-9]{1,2})(?:$|[^0-9.])`)

// kubernetesVersion returns the Kubernetes version in the name of a template, or the empty string.
func kubernetesVersion(name string) string {
	found := kubernetesInName.FindStringSubmatch(name)
	if found == nil {
		return ""
	}
	return "v" + found[1]
}
