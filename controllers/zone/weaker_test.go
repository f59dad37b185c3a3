// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

const vmAuthor = "VM Author"

// newWithVMAuthors returns a cluster in three zones with an endpoint on the edge gateway. The user of zone b only has
// rights on VMs, none on edge gateways.
func newWithVMAuthors(t *testing.T, objects ...client.Object) *controllertest.Env {
	t.Helper()
	model := vcdsim.ThreeZones()
	acme := &model.Orgs[1]
	rights := vcdsimtest.DocumentedRole(t, "../../docs/security/permissions.md", "capvcd")
	acme.Roles = append(acme.Roles, vcdsim.Role{
		Name: vmAuthor,
		Rights: slices.DeleteFunc(rights, func(right string) bool {
			return strings.HasPrefix(right, "Organization vDC Gateway: ")
		}),
	})
	w := controllertest.NewInZonesOn(t, model, objects...)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.SetRole("acme", "admin", vmAuthor) })
	w.AddIdentity("of-b", "admin")
	z := w.DeploymentZone("b")
	z.Spec.IdentityRef.Name = "of-b"
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	c := w.VCDCluster()
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
		Type:        infrav1.EndpointEdgeGateway,
		EdgeGateway: &infrav1.EdgeGatewayEndpoint{Name: "acme-vdc-gateway"},
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	return w
}

// controlPlaneIn returns the objects of a control plane in a zone.
func controlPlaneIn(zone, name string) []client.Object {
	objects := controllertest.InZone(zone, name)
	for _, o := range objects[:2] {
		labels := o.GetLabels()
		labels[clusterv1.MachineControlPlaneLabel] = ""
		o.SetLabels(labels)
	}
	return objects
}

// TestAZoneLogsInAsItsOwnServiceAccount gives a zone an identity that no VCDCluster references.
func TestAZoneLogsInAsItsOwnServiceAccount(t *testing.T) {
	w := controllertest.NewInZones(t, controllertest.InZone("b", "md-b")...)
	token := w.NewToken(t, "zone-b")
	w.AddIdentity("of-b", "admin")
	identity := &infrav1.VCDIdentity{}
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "of-b"}
	w.Expect(w.Client.Get(w.Ctx, key, identity)).To(Succeed())
	identity.Spec.Type = infrav1.CredentialServiceAccount
	w.Expect(w.Client.Update(w.Ctx, identity)).To(Succeed())
	secret := w.Secret("of-b")
	secret.Data = map[string][]byte{"apiToken": []byte(token), "ca.crt": w.Sim.CA()}
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	z := w.DeploymentZone("b")
	z.Spec.IdentityRef.Name = "of-b"
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())

	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("md-b")

	w.Identify("of-b")
	w.Expect(w.Client.Get(w.Ctx, key, identity)).To(Succeed())
	w.Expect(conditions.IsTrue(identity, infrav1.LoggedInCondition)).To(BeTrue())
	w.DeleteMachine("md-b")
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestTheEndpointIsWrittenWithTheIdentityOfTheCluster(t *testing.T) {
	w := newWithVMAuthors(t, append(controlPlaneIn("a", "cp-a"), controlPlaneIn("b", "cp-b")...)...)

	w.Ready("cp-a", "cp-b")
	w.ExpectSettled("cp-b")

	w.DeleteMachine("cp-b")
	w.DeleteMachine("cp-a")
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

// TestAZoneWithFewerRightsRecoversFromFailures disturbs the requests of a zone's user while machines are created and
// deleted. The user of the cluster has all rights.
func TestAZoneWithFewerRightsRecoversFromFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault vcdsim.Fault
	}{
		{
			name:  "requests are lost",
			fault: vcdsim.Fault{Operation: "POST *", DropBefore: true, Count: 2},
		},
		{
			name:  "responses are lost",
			fault: vcdsim.Fault{Operation: "POST *", DropAfter: true, Count: 2},
		},
		{
			name:  "its session ends",
			fault: vcdsim.Fault{Operation: "POST /api/*", EndSession: true, Count: 2},
		},
		{
			name:  "its VM is busy",
			fault: vcdsim.Fault{Operation: "POST /api/vApp/*", Status: http.StatusBadRequest, Code: "BUSY_ENTITY", Count: 2},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWithVMAuthors(t, append(controlPlaneIn("a", "cp-a"), controllertest.InZone("b", "md-b")...)...)
			tt.fault.User = "admin"

			w.Sim.Faults().Add(tt.fault)
			w.Ready("cp-a", "md-b")

			w.Expect(w.Sim.Faults().List()).To(BeEmpty(), "the requests were disturbed")
			w.Expect(w.Sim.State().VMs).To(HaveLen(2))
			w.ExpectSettled("cp-a")
			w.ExpectSettled("md-b")
			w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())

			w.Sim.Faults().Add(tt.fault)
			w.DeleteMachine("md-b")
			w.Sim.Faults().Clear()
			w.DeleteMachine("cp-a")
			w.DeleteCluster()
			w.Expect(w.Sim.State().VApps).To(BeEmpty())
		})
	}
}
