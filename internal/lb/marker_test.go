// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// A key is only written if what it was written on is found again: else it would have no owner.
func TestAKeyIsWrittenOnlyIfTheMarkerCanBeRead(t *testing.T) {
	keys := []string{
		"x\nmachine",
		"x\ncluster-api-provider-vcd",
		"x\vcluster=c2",
		"dns\u00a0shop",
		"dns\u0085shop",
		"a\u2028b",
		"\n",
		strings.Repeat("k", maxDescription),
		"dns",
		"a=b",
		"dns.shop_1-2",
	}
	r := rand.New(rand.NewPCG(1, 2))
	runes := []rune("ab=\t\n\v\f\r \u0085\u00a0\u2003machine")
	for range 200 {
		key := make([]rune, 1+r.IntN(8))
		for i := range key {
			key[i] = runes[r.IntN(len(runes))]
		}
		keys = append(keys, string(key))
	}
	written := 0
	for _, key := range keys {
		g := NewWithT(t)
		d := ourService()
		d.Share = key
		p := newModel().next(d)
		if len(p.Refusals) > 0 {
			g.Expect(p.Refusals).To(ConsistOf(HaveField("Reason", Unsupported)), "%q", key)
			continue
		}
		for _, s := range stepsOf(p) {
			if s.Service == nil {
				continue
			}
			written++
			m, origin := OwnerOf(d.Owner.Cluster, KindService, s.Name, s.Service.Description)
			g.Expect(origin).To(Equal(Marked), "%q", key)
			g.Expect(m.Owner.Is(d.Owner)).To(BeTrue(), "%q", key)
			g.Expect(m.Share).To(Equal(key))
			g.Expect(len(s.Service.Description)).To(BeNumerically("<=", maxDescription), "%q", key)
			g.Expect(describe(s.Service.Description, m)).To(Equal(s.Service.Description), "%q", key)
		}
	}
	NewWithT(t).Expect(written).To(BeNumerically(">", 10))
}
