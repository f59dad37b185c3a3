// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// An editedClient edits an object just before its id is stored, as another client would.
type editedClient struct {
	client.Client

	edit func()
}

func (c *editedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	if raw, err := patch.Data(obj); err == nil && bytes.Contains(raw, []byte("infraID")) && c.edit != nil {
		c.edit()
		c.edit = nil
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func TestAConcurrentlyChangedSpecIsNotMadeImmutable(t *testing.T) {
	w := controllertest.New(t)
	edited := false
	w.Cluster.Client = &editedClient{
		Client: w.Client,
		edit: func() {
			edited = true
			c := w.VCDCluster()
			c.Spec.OVDC = "nope"
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
		},
	}
	w.Eventually(func() bool {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		return edited
	}, controllertest.Patience, "5ms").Should(BeTrue())

	w.EventuallyCluster(infrav1.NetworkReadyCondition, infrav1.VDCNotFoundReason)
	w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty())
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Port).To(BeZero(), "it is written when the endpoint is known")
}

// dropStatus moves the cluster to another management cluster, or restores it from a backup.
func dropStatus(t *testing.T, w *controllertest.Env) {
	t.Helper()
	c := w.VCDCluster()
	c.Status = infrav1.VCDClusterStatus{}
	w.Expect(w.Client.Status().Update(w.Ctx, c)).To(Succeed())
	w.Restart(t, w.Cluster.Recorder)
}

func renamePlace(w *controllertest.Env) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		vdc := e.VDC("acme-vdc")
		vdc.Name = "acme-vdc-renamed"
		for i := range vdc.Networks {
			vdc.Networks[i].Name += "-renamed"
		}
	})
}

func TestVDCAndNetworkCanBeRenamedBeforeAMove(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	renamePlace(w)
	dropStatus(t, w)

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Status.OVDC.Name).To(Equal("acme-vdc-renamed"))
	w.Expect(w.VCDCluster().Status.OVDCNetwork.Name).To(Equal("nodes-renamed"))

	w.DeleteMachine("cp-0")
	dropStatus(t, w)
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestAReplacedVDCIsLookedUpOnRequest(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	lost := "urn:vcloud:vdc:11111111-2222-3333-4444-555555555555"
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.OVDCID = lost })
	w.EventuallyCluster(infrav1.NetworkReadyCondition, infrav1.VDCNotFoundReason)
	w.Expect(conditions.GetMessage(w.VCDCluster(),
		infrav1.NetworkReadyCondition)).To(ContainSubstring("remove spec.recordedState.ovdcID"))

	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.OVDCID = "" })

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.RecordedState.OVDCID).To(Equal(w.VCDCluster().Status.OVDC.ID))
}

func TestThePlacementRecordsOfACopiedManifestAreIgnored(t *testing.T) {
	w := controllertest.New(t)
	w.Record(func(r *infrav1.VCDClusterRecordedState) {
		r.OVDCID = "urn:vcloud:vdc:11111111-2222-3333-4444-555555555555"
		r.OVDCNetworkID = "urn:vcloud:network:11111111-2222-3333-4444-555555555555"
	})

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	c := w.VCDCluster()
	w.Expect(c.Spec.RecordedState.OVDCID).To(Equal(c.Status.OVDC.ID))
	w.Expect(c.Spec.RecordedState.OVDCNetworkID).To(Equal(c.Status.OVDCNetwork.ID))
}

func TestLackOfAccessIsUnknownForAClusterWithoutStatus(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	dropStatus(t, w)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /cloudapi/1.0.0/sessions", Status: http.StatusForbidden})

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRejectedReason)

	w.Expect(conditions.Get(w.VCDCluster(), infrav1.IdentityReadyCondition).Status).To(Equal(metav1.ConditionUnknown))
}
