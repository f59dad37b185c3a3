// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestObjectsHiddenByAMissingRightAreDetectedAfterARestart(t *testing.T) {
	https := func(o loadbalancer.Owner, ports ...int) lb.Desired {
		d := desired(o, ports...)
		d.Listeners[0].Application = lb.HTTPS
		d.Listeners[0].Certificate.Chain, d.Listeners[0].Certificate.Key = selfSigned(t)
		return d
	}
	for _, tt := range []struct {
		name, list, right string
		desired           func(loadbalancer.Owner, ...int) lb.Desired
	}{
		{
			name:    "rules, from a virtual service behind them",
			list:    "edgeGateways/nat/rules",
			right:   "Organization vDC Gateway: View NAT",
			desired: oneArm,
		},
		{
			name:    "profiles, from a virtual service behind them",
			list:    "applicationPortProfiles",
			right:   "Organization vDC Gateway: View",
			desired: oneArm,
		},
		{name: "IP sets, from a pool that uses them", list: "firewallGroups/summaries", right: "Organization vDC Gateway: View", desired: desired},
		{name: "certificates, from a virtual service that uses one", list: "ssl/certificateLibrary", right: "Certificate Library: View", desired: https},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			d := tt.desired(service("c1", "web"), 80)
			w.converge(&d)
			w.restart()
			fault := w.sim.Faults().Add(vcdsim.Fault{
				Status:    http.StatusForbidden,
				Operation: "GET /cloudapi/1.0.0/" + tt.list,
			})
			gone := absent(d)

			_, err := w.reach(&gone)
			w.Expect(err).To(MatchError(loadbalancer.ErrRefused))
			w.Expect(err).To(MatchError(ContainSubstring(tt.right)))
			w.restart()
			_, err = w.driver.Owners(t.Context(), w.gateway, "c1")
			w.Expect(err).To(MatchError(loadbalancer.ErrRefused))
			w.Expect(err).To(MatchError(ContainSubstring(tt.right)))

			w.sim.Faults().Remove(fault)
			w.restart()
			w.remove(d)
			w.Expect(w.left("")).To(BeEmpty())
		})
	}
}

func TestHiddenRulesMayExistWhereAddressesAreTranslated(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	w.sim.Faults().Add(vcdsim.Fault{
		Status:    http.StatusForbidden,
		Operation: "GET /cloudapi/1.0.0/edgeGateways/nat/rules",
	})
	query := lb.Query{Owner: service("c1", "web"), Facts: lb.Forwardings}

	_, err := w.driver.Observe(t.Context(), w.gateway, query)
	w.Expect(err).NotTo(HaveOccurred(), "a user who cannot view rules has not created any")

	query.Translated = true
	_, err = w.driver.Observe(t.Context(), w.gateway, query)
	w.Expect(err).To(MatchError(loadbalancer.ErrRefused))
}
