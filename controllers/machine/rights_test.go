// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// newWithRole returns an environment whose user has the documented role minus some rights.
func newWithRole(t *testing.T, without ...string) *controllertest.Env {
	t.Helper()
	model := vcdsim.K8sTenant()
	roles := model.Orgs[1].Roles
	i := slices.IndexFunc(roles, func(r vcdsim.Role) bool { return r.Name == vcdsim.RoleClusterAuthor })
	roles[i].Rights = slices.DeleteFunc(vcdsimtest.DocumentedRole(t, "../../docs/security/permissions.md", "capvcd"),
		func(right string) bool { return slices.Contains(without, right) })
	return controllertest.NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model},
		controllertest.NewMachine("a", twoNICs, func(m *infrav1.VCDMachine) {
			m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
			m.Spec.SizingPolicy = "large"
		})...)
}

func TestTheDocumentedRoleIsEnough(t *testing.T) {
	w := newWithRole(t)
	w.Ready("a")
	w.ExpectSettled("a")
	w.DeleteMachine("a")
	w.DeleteCluster()

	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestADeletionWaitsForTheRightToSeeLoadBalancers(t *testing.T) {
	const gateway = "Organization vDC Gateway: "
	w := newWithRole(t, gateway+"View Load Balancer", gateway+"Configure Load Balancer")
	w.Ready("a")
	w.DeleteMachine("a")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.LoadBalancersNotDeletedReason)
}

func TestAMissingRightIsReportedInACondition(t *testing.T) {
	for right, condition := range map[string]string{
		vcd.RightConsolidate:           infrav1.PlacementReadyCondition,
		"vApp: Create / Reconfigure":   infrav1.VAppReadyCondition,
		"vApp: Edit VM Properties":     infrav1.BootstrapInjectedCondition,
		"vApp: Edit VM Hard Disk":      infrav1.BootstrapInjectedCondition,
		"vApp: Allow All Extra Config": infrav1.BootstrapInjectedCondition,
		"vApp: Power Operations":       infrav1.PoweredOnCondition,
	} {
		t.Run(right, func(t *testing.T) {
			w := newWithRole(t, right)
			w.EventuallyCluster("Ready", infrav1.ReadyReason)

			w.EventuallyMachine("a", condition, infrav1.ForbiddenReason)
		})
	}
}
