// SPDX-License-Identifier: Apache-2.0

package vcdsimtest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// DocumentedRole returns the rights of the role in a guide, as its resource vcd_role has them.
func DocumentedRole(tb testing.TB, guide string) []string {
	tb.Helper()
	page, err := os.ReadFile(guide) //nolint:gosec // The test names the guide.
	if err != nil {
		tb.Fatal(err)
	}
	_, role, found := strings.Cut(string(page), `resource "vcd_role"`)
	if !found {
		tb.Fatalf("%s has no resource vcd_role", guide)
	}
	_, role, _ = strings.Cut(role, "rights = [")
	role, _, _ = strings.Cut(role, "]")
	rights := regexp.MustCompile(`"[^"]+"`).FindAllString(role, -1)
	for i := range rights {
		rights[i] = strings.Trim(rights[i], `"`)
	}
	return rights
}
