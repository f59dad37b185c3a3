// SPDX-License-Identifier: Apache-2.0

package cpi

import "strings"

// LabelValue converts a name into a valid label value. Invalid characters become hyphens.
func LabelValue(name string) string {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
	}
	value := strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '-'
	}, strings.TrimSpace(name))
	return strings.Trim(value[:min(63, len(value))], "-_.")
}
