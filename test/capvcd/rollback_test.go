// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// settled is three times the period in which CAPVCD resyncs all objects in these tests.
const settled = 90 * time.Second

// TestCAPVCDTakesItsClustersBack returns to CAPVCD after adoption. The management cluster is restored from its backup,
// and CAPVCD's own manager works with the objects that this provider leaves in VCD.
func TestCAPVCDTakesItsClustersBack(t *testing.T) {
	needsOriginal(t)
	for _, name := range []string{"two-arm", "one-arm-with-entity", "ip-spaces"} {
		t.Run(name, func(t *testing.T) {
			a := startAdoption(t, name)
			vms := a.vms()
			objects := a.ofCluster()
			ran := running(a.simulator)
			a.installProvider()
			a.awaitReady()
			a.Expect(a.manager.Kill()).To(Succeed())
			a.Expect(a.stack.Stop()).To(Succeed())

			restored := &adoption{
				upgrade:   start(t),
				name:      name,
				simulator: a.simulator,
			}
			restored.installVersions("v1beta2")
			restored.createIn(namespace)
			began := time.Now()
			startCAPVCD(t, restored.stack, scenarioOf(name).env...)

			restored.Consistently(restored.vms, settled, "1s").Should(ConsistOf(vms))
			restored.Expect(restored.ofCluster()).To(ConsistOf(objects), "nothing is made twice")
			restored.Expect(changesOf(a.simulator, ran, began)).To(BeEmpty(), "VMs are not written to")
			restored.Expect(a.simulator.Requests()).To(ContainElement(HaveField("Time", BeTemporally(">", began))))

			restored.Expect(restored.client.Delete(t.Context(), theCluster())).To(Succeed())
			restored.expectGone()
		})
	}
}
