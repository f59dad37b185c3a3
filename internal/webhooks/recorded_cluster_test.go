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

func TestWhereAClusterIsAndWhatIsGoneIsWrittenByTheController(t *testing.T) {
	const (
		vdc, vApps, gone = infrav1.OVDCIDAnnotation, infrav1.VAppsAnnotation, infrav1.VAppGoneAnnotation
		uuid             = "11111111-2222-3333-4444-555555555555"
		here, there      = "urn:vcloud:vdc:" + uuid, "urn:vcloud:vdc:99999999-2222-3333-4444-555555555555"
		first, second    = "urn:vcloud:vapp:" + uuid, "urn:vcloud:vapp:99999999-2222-3333-4444-555555555555"
	)
	field := func(key string) []string { return []string{"metadata.annotations[" + key + "]"} }
	tests := []struct {
		name          string
		before, after map[string]string
		deleted       bool
		refused       []string
	}{
		{"the controller records the VDC", nil, map[string]string{vdc: here}, false, nil},
		{"a person has it looked up again", map[string]string{vdc: here}, nil, false, nil},
		{"another VDC", map[string]string{vdc: here}, map[string]string{vdc: there}, false, field(vdc)},
		{"a VDC by name", nil, map[string]string{vdc: "acme-vdc"}, false, field(vdc)},
		{"two VDCs", nil, map[string]string{vdc: here + "," + there}, false, field(vdc)},
		{"what was wrong before stays", map[string]string{vdc: "x"}, map[string]string{vdc: "x"}, false, nil},
		{"vApps", nil, map[string]string{vApps: first + "," + second}, false, nil},
		{"no vApps", nil, map[string]string{vApps: "true"}, false, field(vApps)},
		{
			"our task deleted a vApp",
			map[string]string{vApps: first},
			map[string]string{vApps: first, gone: first},
			true,
			nil,
		},
		{
			"a vApp is gone before the cluster is deleted",
			map[string]string{vApps: first},
			map[string]string{vApps: first, gone: first},
			false,
			field(gone),
		},
		{
			"a vApp that was not recorded is gone",
			map[string]string{vApps: first},
			map[string]string{vApps: first + "," + second, gone: first + "," + second},
			true,
			field(gone),
		},
		{"all are gone, says a person", nil, map[string]string{gone: "true"}, true, append(field(gone), field(gone)...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := cluster()
			after := cluster()
			before.Spec.InfraID = uuid
			after.Spec.InfraID = uuid
			before.Annotations = tt.before
			after.Annotations = tt.after
			if tt.deleted {
				now := metav1.NewTime(time.Now())
				before.DeletionTimestamp = &now
				after.DeletionTimestamp = &now
			}

			_, err := clusterValidator().ValidateUpdate(t.Context(), before, after)

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
		})
	}
}

func TestACopiedClusterGetsRecordsOfItsOwn(t *testing.T) {
	const uuid, other = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
	g := NewWithT(t)
	before := cluster()
	after := cluster()
	before.Annotations = map[string]string{
		infrav1.OVDCIDAnnotation:          "urn:vcloud:vdc:" + uuid,
		infrav1.OVDCNetworkIDAnnotation:   "urn:vcloud:network:" + uuid,
		infrav1.EndpointGatewayAnnotation: "urn:vcloud:gateway:" + uuid,
	}
	after.Spec.InfraID = uuid
	after.Annotations = map[string]string{
		infrav1.OVDCIDAnnotation:          "urn:vcloud:vdc:" + other,
		infrav1.OVDCNetworkIDAnnotation:   "urn:vcloud:network:" + other,
		infrav1.EndpointGatewayAnnotation: "urn:vcloud:gateway:" + other,
	}

	_, err := clusterValidator().ValidateUpdate(t.Context(), before, after)

	g.Expect(err).NotTo(HaveOccurred())
}

func TestARestoredClusterKeepsWhatTheControllerWrote(t *testing.T) {
	g := NewWithT(t)
	c := cluster()
	c.Annotations = map[string]string{
		infrav1.OVDCIDAnnotation:   "urn:vcloud:vdc:11111111-2222-3333-4444-555555555555",
		infrav1.VAppGoneAnnotation: "urn:vcloud:vapp:11111111-2222-3333-4444-555555555555",
	}

	_, err := clusterValidator().ValidateCreate(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())

	c.Annotations[infrav1.OVDCIDAnnotation] = "acme-vdc"
	_, err = clusterValidator().ValidateCreate(t.Context(), c)
	g.Expect(refusedFields(g, err)).To(Equal([]string{"metadata.annotations[" + infrav1.OVDCIDAnnotation + "]"}))
}

func TestOnlyTheControllerAddsWhereAClusterIsAndWhatIsGone(t *testing.T) {
	const (
		vdc, network, vApps = infrav1.OVDCIDAnnotation, infrav1.OVDCNetworkIDAnnotation, infrav1.VAppsAnnotation
		gone                = infrav1.VAppGoneAnnotation
		uuid                = "11111111-2222-3333-4444-555555555555"
	)
	there := map[string]string{vdc: "urn:vcloud:vdc:" + uuid, network: "urn:vcloud:network:" + uuid}
	deleted := map[string]string{vApps: "urn:vcloud:vapp:" + uuid, gone: "urn:vcloud:vapp:" + uuid}
	tests := []struct {
		name          string
		before, after map[string]string
		deleted       bool
		refused       []string
	}{
		{
			"another place, after the record of the first was removed",
			nil,
			there,
			false,
			[]string{"metadata.annotations[" + vdc + "]", "metadata.annotations[" + network + "]"},
		},
		{"a record that stays", there, there, false, nil},
		{"a record that is removed", there, nil, false, nil},
		{
			"a vApp that is not deleted",
			map[string]string{vApps: "urn:vcloud:vapp:" + uuid},
			deleted,
			true,
			[]string{"metadata.annotations[" + gone + "]"},
		},
		{"what the controller wrote stays", deleted, deleted, true, nil},
	}
	for _, tt := range tests {
		for _, own := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				g := NewWithT(t)
				v := clusterValidator()
				before := cluster()
				after := cluster()
				v.own = func(context.Context) (bool, error) { return own, nil }
				before.Annotations = tt.before
				after.Annotations = tt.after
				if tt.deleted {
					now := metav1.NewTime(time.Now())
					before.DeletionTimestamp = &now
					after.DeletionTimestamp = &now
				}

				_, err := v.ValidateUpdate(t.Context(), before, after)

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
	s := &self{client: reviews}
	by := func(user string, groups ...string) context.Context {
		request := admission.Request{}
		request.UserInfo.Username = user
		request.UserInfo.Groups = groups
		return admission.NewContextWithRequest(t.Context(), request)
	}

	g.Expect(s.made(by(reviews.name))).To(BeTrue())
	g.Expect(s.made(by("jane"))).To(BeFalse())
	g.Expect(s.made(by("system:serviceaccount:capvcd-system:team-a", "system:serviceaccounts",
		"system:serviceaccounts:capvcd-system"))).To(BeTrue(), "another manager beside this one")
	g.Expect(s.made(by("system:serviceaccount:team-a:deployer", "system:serviceaccounts",
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
