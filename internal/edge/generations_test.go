// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAnOlderNodeListDoesNotOverwriteANewerOne(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	members := func() (out []string) {
		for _, doc := range w.sim.State().Documents {
			if doc.Path == "1.0.0/firewallGroups" {
				var body struct{ IPAddresses []string }
				w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
				out = append(out, body.IPAddresses...)
			}
		}
		return out
	}
	late := desired(service("c1", "late"), 80)
	early := desired(service("c1", "early"), 80)
	late.Generation = 1
	early.Generation = 2
	w.converge(&late)
	w.converge(&early)
	late.Generation = 3
	early.Generation = 4
	late.Members = append(late.Members, netip.MustParseAddr("192.168.100.13"))
	early.Members = append(early.Members, late.Members[2], netip.MustParseAddr("192.168.100.14"))
	planned, err := w.plan(&late)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(planned.Steps).To(HaveLen(1))
	w.converge(&early)

	w.Expect(w.driver.Run(t.Context(), w.gateway, planned.Steps[0])).To(Succeed())
	w.Expect(members()).To(HaveLen(4))
	plan, err := w.plan(&late)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Done()).To(BeTrue())

	late.Generation = 5
	w.converge(&late)
	w.Expect(members()).To(HaveLen(3), "the later list counts")
}
