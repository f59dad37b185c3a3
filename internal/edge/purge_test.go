// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAPurgeRemovesAllObjectsOfTheClusterAndNoOthers(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	one := desired(service("c1", "one"), 80)
	two := oneArm(service("c1", "two"), 81)
	other := desired(service("c2", "one"), 82)
	for _, d := range []*lb.Desired{&one, &two, &other} {
		w.converge(d)
	}
	owners := map[string]bool{}
	opts := edge.PurgeOptions{
		Cluster: "c1",
		NAT:     true,
		Before: func(_ context.Context, owner loadbalancer.Owner, _ lb.Step) error {
			owners[owner.String()] = true
			return nil
		},
	}

	w.Eventually(func() error { return w.driver.Purge(t.Context(), w.gateway, opts) }).Should(Succeed())

	w.Expect(w.left("c1")).To(BeEmpty())
	w.Expect(w.left("c2")).NotTo(BeEmpty())
	w.Expect(owners).To(And(HaveKey("default/one"), HaveKey("default/two")))
}

func TestAPurgeStopsBeforeAForbiddenStep(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	w.converge(&d)
	before := w.left("c1")
	forbidden := errors.New("the lease is lost")

	err := w.driver.Purge(t.Context(), w.gateway, edge.PurgeOptions{
		Cluster: "c1",
		Before:  func(context.Context, loadbalancer.Owner, lb.Step) error { return forbidden },
	})

	w.Expect(err).To(MatchError(forbidden))
	w.Expect(w.left("c1")).To(Equal(before))
}

func TestAPurgeListsItsObjects(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	one := desired(service("c1", "one"), 80)
	other := desired(service("c2", "one"), 82)
	for _, d := range []*lb.Desired{&one, &other} {
		w.converge(d)
	}

	found, err := w.driver.Remains(t.Context(), w.gateway, "c1")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(found).To(HaveLen(len(w.left("c1"))))
	w.Expect(found).To(ContainElement(HavePrefix("virtual-service ")))
}

func TestADeletedGatewayLeavesOrganizationObjectsToThePurge(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := oneArm(service("c1", "web"), 80)
	w.converge(&d)
	w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteGateway(w.gateway) })
	opts := edge.PurgeOptions{Cluster: "c1"}
	w.Expect(w.driver.Purge(t.Context(), w.gateway, opts)).To(MatchError(loadbalancer.ErrRefused))
	w.Expect(w.left("c1")).To(ContainElement(ContainSubstring("applicationPortProfiles")))

	opts.Gone = true
	w.Eventually(func() error { return w.driver.Purge(t.Context(), w.gateway, opts) }).Should(Succeed())

	w.Expect(w.left("c1")).To(BeEmpty())
}
