// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// zoneVDCs are the VDCs of the zones a, b and c.
var zoneVDCs = map[string]string{"a": "acme-vdc", "b": "acme-vdc-b", "c": "acme-vdc-c"}

// idleZoneCalls is the budget of calls per hour for three idle zones and a cluster in them. VDCs, storage profiles and
// catalogs are read about every five minutes, because VCD does not announce their loss, and networks every ten minutes.
const idleZoneCalls = 240

// inZones runs a test in a bubble with a VDC and a VCDDeploymentZone for each zone.
func inZones(t *testing.T, change func(*vcdsim.Config), test func(*bubble)) {
	t.Helper()
	inBubble(t, func(c *vcdsim.Config) {
		c.Model = vcdsim.ThreeZones()
		nodes := &c.Model.Orgs[1].VDCs[0].Networks[0]
		nodes.Gateway = netip.MustParsePrefix("10.0.0.1/16")
		nodes.DHCPPool = nil
		nodes.StaticPool = []vcdsim.Range{{From: netip.MustParseAddr("10.0.1.0"), To: netip.MustParseAddr("10.0.9.255")}}
		change(c)
	}, func(b *bubble) {
		for zone, vdc := range zoneVDCs {
			d := &infrav1.VCDFailureDomain{ObjectMeta: metav1.ObjectMeta{Name: zone}}
			d.Spec = infrav1.VCDFailureDomainSpec{Region: "eu", Zone: "eu-" + zone, OVDC: vdc}
			z := &infrav1.VCDDeploymentZone{ObjectMeta: metav1.ObjectMeta{Name: zone}}
			z.Spec = infrav1.VCDDeploymentZoneSpec{
				FailureDomain:       zone,
				Site:                b.URL(),
				Org:                 "acme",
				IdentityRef:         infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
				PlacementConstraint: infrav1.PlacementConstraint{Networks: []string{"nodes"}, Catalog: "kubernetes"},
			}
			b.create(d, z)
		}
		test(b)
	})
}

// selectsAllZones makes a cluster use all zones instead of one VDC.
func selectsAllZones(c *infrav1.VCDCluster) {
	c.Spec.OVDC = ""
	c.Spec.OVDCNetwork = ""
	c.Spec.FailureDomainSelector = &metav1.LabelSelector{}
}

// inZone places a machine in a zone.
func inZone(zone string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.FailureDomain = zone }
}

func TestMachinesInThreeZonesFollowTheCriticalPath(t *testing.T) {
	for seed := range int64(2) {
		inZones(t, func(c *vcdsim.Config) { c.Seed = seed }, func(b *bubble) {
			b.cluster(1, 0, selectsAllZones)
			for zone := range zoneVDCs { // two machines in each zone
				for i := range 2 {
					b.machine("c1", fmt.Sprintf("c1-%s%d", zone, i), inZone(zone))
				}
			}

			took := b.awaitReady(6, 20*time.Minute)

			b.compare(fmt.Sprintf("six machines in three zones, seed %d", seed), took,
				criticalPath(b.State(), time.Time{}), nineMachines)
			vApps := map[string]int{}
			for _, vApp := range b.State().VApps {
				vApps[vApp.VDCID]++
			}
			b.Expect(vApps).To(HaveLen(3), "one vApp in each VDC")

			since := time.Now()
			for zone := range zoneVDCs {
				b.machine("c1", "c1-more-"+zone, inZone(zone))
			}
			took = b.awaitReady(9, 20*time.Minute)
			b.compare(fmt.Sprintf("one more machine in each zone, seed %d", seed), took, criticalPath(b.State(), since),
				nineMachines)
		})
	}
}

func TestIdleZonesAreRarelyRead(t *testing.T) {
	inZones(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 0, selectsAllZones)
		for zone := range zoneVDCs {
			b.machine("c1", "c1-"+zone, inZone(zone))
		}
		b.awaitReady(3, time.Hour)
		<-time.After(settleTime)
		start := time.Now()
		versions := b.versions()

		<-time.After(4 * time.Hour)

		calls := b.requests(start)
		t.Logf("four idle hours with three zones: %.1f calls per hour\n%s", float64(len(calls))/4,
			table(byOperation(calls)))
		b.Expect(b.writes(start)).To(BeEmpty())
		b.Expect(b.versions()).To(Equal(versions), "Kubernetes objects should not change")
		b.Expect(len(calls) / 4).To(BeNumerically("<=", idleZoneCalls))
	})
}
