// SPDX-License-Identifier: Apache-2.0

package vcdsimtest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// DocumentedRole returns the rights of a role from the vcd_role resource of that name on a documentation page.
func DocumentedRole(tb testing.TB, page, name string) []string {
	tb.Helper()
	content, err := os.ReadFile(page) //nolint:gosec // The test names the page.
	if err != nil {
		tb.Fatal(err)
	}
	_, role, found := strings.Cut(string(content), fmt.Sprintf("resource %q %q", "vcd_role", name))
	if !found {
		tb.Fatalf("%s has no resource vcd_role %s", page, name)
	}
	_, role, _ = strings.Cut(role, "rights = [")
	role, _, _ = strings.Cut(role, "]")
	rights := regexp.MustCompile(`"[^"]+"`).FindAllString(role, -1)
	for i := range rights {
		rights[i] = strings.Trim(rights[i], `"`)
	}
	return rights
}
