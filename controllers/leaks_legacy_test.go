// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// legacyID is the ID that CAPVCD gives to a cluster without an entity.
const legacyID = "NO_RDE_0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"

// makeLegacy converts the load balancer of a Service to a control plane load balancer of CAPVCD: names contain the ID,
// and no object has a marker.
func makeLegacy(w *controllertest.Env, cluster string) {
	state := w.Sim.State()
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i, doc := range state.Documents {
			if !strings.Contains(string(doc.Body), cluster) {
				continue
			}
			name := fmt.Sprintf("prod%d-%s-tcp", i, legacyID)
			switch {
			case strings.Contains(doc.Path, "nat/rules"):
				name = "dnat-" + name
			case strings.Contains(doc.Path, "applicationPortProfiles"):
				name = "appPort_dnat-" + name
			case strings.Contains(doc.Path, "firewallGroups"):
				name = "others"
			}
			e.Document(doc.ID, func(body map[string]any) {
				body["name"] = name
				body["description"] = ""
			})
		}
	})
}

// Only --legacy deletes the load balancer that CAPVCD created for a control plane, and it deletes nothing else.
func TestTheCAPVCDControlPlaneIsPurgedOnlyWithLegacy(t *testing.T) {
	w := controllertest.NewBalancedOn(t, vcdsim.CloudProvider())
	living := w.VCDCluster().Spec.InfraID
	oneArm := &lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.100")}
	w.Balance(living, "web", oneArm)
	w.Balance("gone", "control-plane", oneArm)
	before := carrying(w.Sim, func(cluster string) bool { return cluster == living })
	makeLegacy(w, "gone")
	s, err := start(t, w).Session(w.Ctx, vcd.Config{
		Site:        w.Sim.URL(),
		Org:         "acme",
		CABundle:    w.Sim.CA(),
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	take := func() leaks.Inventory {
		found, err := leaks.Take(context.WithoutCancel(w.Ctx), s, time.Now().Add(48*time.Hour))
		w.Expect(err).NotTo(HaveOccurred())
		return found
	}
	options := leaks.Options{Cluster: legacyID, NoMachines: true, Alive: leaks.Alive{living: "mgmt: team-a/vc1"}}
	kinds := map[string]int{}
	for _, o := range take().Of(legacyID) {
		w.Expect(o.By).To(Equal(lb.WriterCAPVCD))
		kinds[o.Kind]++
	}
	w.Expect(kinds).To(Equal(map[string]int{
		"virtual-service":  2,
		"lb-pool":          2,
		"dnat-rule":        2,
		"app-port-profile": 2,
	}))

	w.Expect(take().Purge(w.Ctx, s, options)).To(MatchError(leaks.ErrRefused))
	w.Expect(take().Of(legacyID)).To(HaveLen(8))
	options.Legacy = true
	w.Expect(take().Purge(w.Ctx, s, options)).To(Succeed())

	w.Expect(take().Of(legacyID)).To(BeEmpty())
	w.Expect(carrying(w.Sim, func(cluster string) bool { return cluster == living })).To(Equal(before))
}
