// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const (
	someUUID     = "11111111-2222-3333-4444-555555555555"
	otherUUID    = "99999999-2222-3333-4444-555555555555"
	someVApp     = "urn:vcloud:vapp:" + someUUID
	otherVApp    = "urn:vcloud:vapp:" + otherUUID
	deletedField = "spec.recordedState.deletedVAppIDs"
)

// recordedCluster is a cluster with records; it is deleted if so.
func recordedCluster(recorded infrav1.VCDClusterRecordedState, deleted bool) *infrav1.VCDCluster {
	c := cluster()
	c.Spec.InfraID = someUUID
	c.Spec.RecordedState = recorded
	if deleted {
		now := metav1.NewTime(time.Now())
		c.DeletionTimestamp = &now
	}
	return c
}

func TestOnlyVAppsOfAClusterThatIsDeletedAreRecordedAsDeleted(t *testing.T) {
	type records = infrav1.VCDClusterRecordedState
	known := records{VAppIDs: []string{someVApp}}
	tests := []struct {
		name          string
		before, after records
		deleted       bool
		refused       []string
	}{
		{name: "our task deleted a vApp", before: known, after: records{VAppIDs: known.VAppIDs, DeletedVAppIDs: known.VAppIDs}, deleted: true},
		{
			name:   "our task deleted a vApp in a zone",
			before: records{Zones: map[string]infrav1.VCDClusterZoneRecord{"a": {VAppIDs: []string{someVApp}}}},
			after: records{
				Zones:          map[string]infrav1.VCDClusterZoneRecord{"a": {VAppIDs: []string{someVApp}}},
				DeletedVAppIDs: []string{someVApp},
			},
			deleted: true,
		},
		{
			name:    "a vApp is deleted before the cluster is",
			before:  known,
			after:   records{VAppIDs: known.VAppIDs, DeletedVAppIDs: known.VAppIDs},
			refused: []string{deletedField},
		},
		{
			name:    "a vApp that was not recorded is deleted",
			before:  known,
			after:   records{VAppIDs: []string{someVApp, otherVApp}, DeletedVAppIDs: []string{someVApp, otherVApp}},
			deleted: true,
			refused: []string{deletedField},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := clusterValidator().ValidateUpdate(t.Context(), recordedCluster(tt.before, tt.deleted),
				recordedCluster(tt.after, tt.deleted))

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
		})
	}
}

func TestRequestsInTheVersionsOfCAPVCDChangeNoRecord(t *testing.T) {
	before := recordedCluster(infrav1.VCDClusterRecordedState{VAppCount: 1}, false)
	lost := recordedCluster(infrav1.VCDClusterRecordedState{}, false)
	for version, refused := range map[string][]string{"v1beta4": nil, "v1beta3": {"spec.recordedState"}} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			request := admission.Request{}
			request.Kind = metav1.GroupVersionKind(infrav1.GroupVersion.WithKind("VCDCluster"))
			asked := request.Kind
			asked.Version = version
			request.RequestKind = &asked
			ctx := admission.NewContextWithRequest(t.Context(), request)

			_, err := clusterValidator().ValidateUpdate(ctx, before, before.DeepCopy())
			g.Expect(err).NotTo(HaveOccurred())

			_, err = clusterValidator().ValidateUpdate(ctx, before, lost)
			g.Expect(refusedFields(g, err)).To(Equal(refused))
		})
	}
}

func TestRecordsAreStoredWhateverIsWrongWithTheSettings(t *testing.T) {
	g := NewWithT(t)
	before := recordedCluster(infrav1.VCDClusterRecordedState{}, false)
	before.Spec.VApp.Name = "no/name"
	after := before.DeepCopy()
	after.Spec.RecordedState.VAppCount = 1

	_, err := clusterValidator().ValidateUpdate(t.Context(), before, after)

	g.Expect(err).NotTo(HaveOccurred())
}

func TestOnlyTheControllerAddsWhereAClusterIsAndWhatIsGone(t *testing.T) {
	there := infrav1.VCDClusterRecordedState{
		OVDCID:        "urn:vcloud:vdc:" + someUUID,
		OVDCNetworkID: "urn:vcloud:network:" + someUUID,
	}
	vApps := infrav1.VCDClusterRecordedState{VAppIDs: []string{someVApp}}
	deleted := infrav1.VCDClusterRecordedState{VAppIDs: []string{someVApp}, DeletedVAppIDs: []string{someVApp}}
	none := infrav1.VCDClusterRecordedState{}
	tests := []struct {
		name          string
		before, after infrav1.VCDClusterRecordedState
		deleted       bool
		refused       []string
	}{
		{
			name:    "another place, after the record of the first was removed",
			before:  none,
			after:   there,
			refused: []string{"spec.recordedState.ovdcID", "spec.recordedState.ovdcNetworkID"},
		},
		{name: "a record that stays", before: there, after: there},
		{name: "a record that is removed", before: there, after: none},
		{name: "a vApp that is not deleted", before: vApps, after: deleted, deleted: true, refused: []string{deletedField}},
		{name: "what the controller wrote stays", before: deleted, after: deleted, deleted: true},
	}
	for _, tt := range tests {
		for _, own := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				g := NewWithT(t)
				v := clusterValidator()
				v.byController = func(context.Context) (bool, error) { return own, nil }

				_, err := v.ValidateUpdate(t.Context(), recordedCluster(tt.before, tt.deleted),
					recordedCluster(tt.after, tt.deleted))

				if own {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
			})
		}
	}
}

func TestTheManagerKnowsItsOwnRequests(t *testing.T) {
	g := NewWithT(t)
	reviews := &selfReviews{name: "system:serviceaccount:capvcd-system:manager"}
	s := &managerUser{client: reviews}
	by := func(user string, groups ...string) context.Context {
		request := admission.Request{}
		request.UserInfo.Username = user
		request.UserInfo.Groups = groups
		return admission.NewContextWithRequest(t.Context(), request)
	}

	g.Expect(s.sent(by(reviews.name))).To(BeTrue())
	g.Expect(s.sent(by("jane"))).To(BeFalse())
	g.Expect(s.sent(by("system:serviceaccount:capvcd-system:team-a", "system:serviceaccounts",
		"system:serviceaccounts:capvcd-system"))).To(BeTrue(), "another manager beside this one")
	g.Expect(s.sent(by("system:serviceaccount:team-a:deployer", "system:serviceaccounts",
		"system:serviceaccounts:team-a"))).To(BeFalse())
	g.Expect(reviews.asked).To(Equal(1))
}

// selfReviews answers who makes a request.
type selfReviews struct {
	client.Writer

	name  string
	asked int
}

// Create fills in the status, as the API server does.
func (r *selfReviews) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	r.asked++
	obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = r.name
	return nil
}
