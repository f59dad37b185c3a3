// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// resyncWait is three times the resync period of CAPVCD in these tests.
const resyncWait = 90 * time.Second

// TestRollbackToCAPVCD returns to CAPVCD after an adoption. The management cluster is restored from a backup, and
// CAPVCD's manager continues with the objects that this provider leaves in VCD.
func TestRollbackToCAPVCD(t *testing.T) {
	requireCAPVCD(t)
	for _, name := range []string{"two-arm", "one-arm-with-entity", "ip-spaces"} {
		t.Run(name, func(t *testing.T) {
			a := startAdoption(t, name)
			vms := a.vms()
			objects := a.vcdObjects()
			ran := runningVMs(a.simulator)
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

			restored.Consistently(restored.vms, resyncWait, "1s").Should(ConsistOf(vms))
			restored.Expect(restored.vcdObjects()).To(ConsistOf(objects), "no object should be duplicated")
			restored.Expect(changesOf(a.simulator, ran, began)).To(BeEmpty(), "VMs should not be written")
			restored.Expect(a.simulator.Requests()).To(ContainElement(HaveField("Time", BeTemporally(">", began))))

			restored.Expect(restored.client.Delete(t.Context(), clusterObject())).To(Succeed())
			restored.expectGone()
		})
	}
}
