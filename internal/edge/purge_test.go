package edge_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAPurgeLeavesNothingOfTheClusterAndAllOfOthers(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	one, two, other := desired(service("c1", "one"), 80), oneArm(service("c1", "two"), 81),
		desired(service("c2", "one"), 82)
	for _, d := range []*lb.Desired{&one, &two, &other} {
		w.insist(d)
	}
	owners := map[string]bool{}
	opts := edge.PurgeOptions{
		Cluster: "c1", Gateways: []string{w.gateway}, NAT: true,
		Before: func(_ context.Context, owner lb.Owner, _ lb.Step) error {
			owners[owner.String()] = true
			return nil
		},
	}

	w.Eventually(func() error { return w.driver.Purge(t.Context(), opts) }).Should(Succeed())

	w.Expect(w.left("c1")).To(BeEmpty())
	w.Expect(w.left("c2")).NotTo(BeEmpty())
	w.Expect(owners).To(And(HaveKey("default/one"), HaveKey("default/two")))
}

func TestAPurgeEndsBeforeAStepThatItsCallerForbids(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	w.insist(&d)
	before, forbidden := w.left("c1"), errors.New("the lease is lost")

	err := w.driver.Purge(t.Context(), edge.PurgeOptions{
		Cluster: "c1", Gateways: []string{w.gateway},
		Before: func(context.Context, lb.Owner, lb.Step) error { return forbidden },
	})

	w.Expect(err).To(MatchError(forbidden))
	w.Expect(w.left("c1")).To(Equal(before))
}

func TestAGatewayThatRefusesKeepsNothingOnAnother(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	w.insist(&d)
	const hidden = "urn:vcloud:gateway:00000000-0000-4000-8000-000000000001"
	w.sim.Faults().Add(vcdsim.Fault{
		Operation: "GET /cloudapi/1.0.0/edgeGateways/" + hidden,
		Status:    http.StatusForbidden,
	})

	err := w.driver.Purge(t.Context(), edge.PurgeOptions{Cluster: "c1", Gateways: []string{hidden, w.gateway}})

	w.Expect(err).To(MatchError(lb.ErrRefused))
	w.Expect(w.left("c1")).To(BeEmpty())
}
