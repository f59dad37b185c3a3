// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// sharedVApp is the second vApp of fixtures with sharedVAppsOnly.
const sharedVApp = "acme-vdc-vapp-001"

// sharedVAppsOnly limits the controller's user to the vApps that are shared with it: two vApps of an administrator.
func sharedVAppsOnly(c *vcdsim.Config) {
	org := &c.Model.Orgs[1]
	org.VDCs[0].Fleet.VApps = 2
	org.VDCs[0].Fleet.Owner = "admin"
	for i := range org.Roles {
		if org.Roles[i].Name == vcdsim.RoleCloudProvider {
			org.Roles[i].Rights = slices.DeleteFunc(slices.Clone(org.Roles[i].Rights),
				func(right string) bool { return right == "General: Administrator View" })
		}
	}
}

// TestNodesStayWhenTheirVAppIsNoLongerShared hides a VM while VMs of other vApps remain visible, for longer than it
// takes to prove that a machine is gone. The VM must not be treated as gone.
func TestNodesStayWhenTheirVAppIsNoLongerShared(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "unshared", fixtureOption{
		cluster: ownCluster(t, "unshared"),
		args:    []string{nodeControllers},
		vcd:     []vcdOption{sharedVAppsOnly},
	})
	g := NewWithT(t)
	v := w.vcd()
	share := func(level string, names ...string) {
		v.Edit(func(e *vcdsim.Editor) {
			for _, name := range names {
				e.Share(e.VApp(name), "ccm", level)
			}
		})
	}
	share("ReadOnly", vcdVApp, sharedVApp)
	all := v.machines()
	m := all[len(all)-1]
	w.node(t, m)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))

	share("", sharedVApp)
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	g.Consistently(func() error { _, err := w.getNode(m.Name); return err }, "80s", "1s").Should(Succeed())

	share("ReadOnly", sharedVApp)
	w.setReady(t, m.Name, corev1.ConditionTrue)
	g.Expect(w.getNode(m.Name)).To(HaveField("Spec.ProviderID", m.ProviderID))
}
