package edge_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestALoadBalancerComesAndGoes(t *testing.T) {
	w := newWorld(t, vcdsim.K8sTenant())
	d := wish(service("c1", "web"), 80, 443)

	plan := w.insist(&d)
	t.Log(plan.Status)
	reads, writes, calls := w.calls()
	t.Log(reads, writes, calls)
	w.insist(&d)
	reads, writes, calls = w.calls()
	t.Log(reads, writes, calls)

	d = absent(d)
	w.insist(&d)
	w.Expect(w.left("c1")).To(BeEmpty())
}
