package edge_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAFloatingIPThatTwoShareStaysWithTheOther(t *testing.T) {
	w := newWorld(t, vcdsim.IPSpaces())
	one, two := wish(service("c1", "one"), 80), wish(service("c1", "two"), 81)
	one.Share, two.Share = "both", "both"
	address := w.insist(&one).Status.Addresses
	w.Expect(w.insist(&two).Status.Addresses).To(Equal(address))
	marks := func() (out []string) {
		for _, a := range w.sim.State().Model.IPSpaces[0].Allocations {
			if strings.Contains(a.Description, "uid=uid-c1") {
				out = append(out, a.Description)
			}
		}
		return out
	}

	gone := absent(one)
	w.insist(&gone)

	w.Expect(marks()).To(ConsistOf(ContainSubstring("uid=uid-c1-two")))
	w.Expect(w.insist(&two).Status.Addresses).To(Equal(address))

	gone = absent(two)
	w.insist(&gone)
	w.Expect(marks()).To(BeEmpty())
}
