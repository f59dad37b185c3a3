// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestVersionsOfThreeDigitsAreNewer(t *testing.T) {
	g := NewWithT(t)
	b := &bench{versions: []string{"38.0", "39.2", "39.10", "100.0"}}

	g.Expect(b.since("39.2")).To(Equal([]string{"39.2", "39.10", "100.0"}))
	g.Expect(b.before("100.0")).To(Equal("39.10"))
	g.Expect(firewallRules("id", "100.0")).To(HavePrefix(firewallPath))
}
