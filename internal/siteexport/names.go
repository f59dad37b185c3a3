// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// systemDefault is the sizing policy that VCD itself gives each VDC.
const systemDefault = "System Default"

// aliases number the objects of a site by kind, in the order in which they are first named.
type aliases struct {
	byID  map[string]alias
	count map[string]int
}

func newAliases() *aliases {
	return &aliases{byID: map[string]alias{}, count: map[string]int{}}
}

// give numbers the next object of a kind.
func (a *aliases) give(kind, id string) alias {
	a.count[kind]++
	given := alias(kind + "-" + strconv.Itoa(a.count[kind]))
	a.byID[id] = given
	return given
}

// of returns the alias that an object has; empty if it has none.
func (a *aliases) of(id string) alias { return a.byID[id] }

// inOrder sorts objects by name, with numbers in names by their value: the aliases of an exported site are in the order
// of its objects, so that exporting the simulated site once more gives the same aliases.
func inOrder[T any](all []T, nameOf func(T) string) []T {
	slices.SortStableFunc(all, func(x, y T) int { return compareNatural(nameOf(x), nameOf(y)) })
	return all
}

var digitsOrNot = regexp.MustCompile(`[0-9]+|[^0-9]+`)

func compareNatural(x, y string) int {
	return slices.CompareFunc(digitsOrNot.FindAllString(x, -1), digitsOrNot.FindAllString(y, -1), comparePart)
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

// kubernetesInName finds a version of Kubernetes in the name of a template: v1.33.1, and not a part of a longer number.
var kubernetesInName = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])v(1\.[0-9]{1,2}\.[0-9]{1,2})(?:$|[^0-9.])`)

// kubernetesVersion returns the version of Kubernetes that the name of a template has; empty if it has none.
func kubernetesVersion(name string) string {
	found := kubernetesInName.FindStringSubmatch(name)
	if found == nil {
		return ""
	}
	return "v" + found[1]
}
