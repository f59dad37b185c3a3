// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestMachinesOfAVDCAreObservedTogether(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	var looks []time.Time
	for i, uid := range []string{"a", "b", "c", "d"} {
		now := start.Add(time.Duration(i) * 7 * time.Second)
		left := untilNextInventory(now, "urn:vdc", uid)
		g.Expect(left).To(And(BeNumerically(">", 0), BeNumerically("<=", inventoryEvery+5*time.Second)))
		looks = append(looks, now.Add(left))
	}
	for _, at := range looks[1:] {
		g.Expect(at.Sub(looks[0]).Abs() % inventoryEvery).To(Or(BeNumerically("<", 5*time.Second),
			BeNumerically(">", inventoryEvery-5*time.Second)))
	}
}
