// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const canary = "canary-password"

func TestCredentialsAreMatchedWithTheirIdentity(t *testing.T) {
	const own = "demo-capvcd-credentials"
	ref := func(namespace, name string) *v1beta2.SecretReference {
		return &v1beta2.SecretReference{Namespace: namespace, Name: name}
	}
	tests := []struct {
		name  string
		given v1beta2.UserCredentialsContext
		want  string
	}{
		{
			name: "a Secret in the namespace is used by the identity",
			given: v1beta2.UserCredentialsContext{
				SecretRef: ref("team-a", "vcd"),
			},
			want: "vcd",
		},
		{
			name: "a Secret without a namespace is in the cluster's",
			given: v1beta2.UserCredentialsContext{
				SecretRef: ref("", "vcd"),
			},
			want: "vcd",
		},
		{
			name: "a Secret in another namespace is not",
			given: v1beta2.UserCredentialsContext{
				SecretRef: ref("team-b", "vcd"),
			},
			want: own,
		},
		{
			name: "a password is moved to a Secret of the cluster",
			given: v1beta2.UserCredentialsContext{
				Username: "admin",
				Password: canary,
			},
			want: own,
		},
		{
			name: "a token is moved to a Secret of the cluster",
			given: v1beta2.UserCredentialsContext{
				RefreshToken: canary,
			},
			want: own,
		},
		{
			name: "a password in addition to a Secret gets another Secret",
			given: v1beta2.UserCredentialsContext{
				Password:  canary,
				SecretRef: ref("team-a", "vcd"),
			},
			want: own,
		},
		{
			name: "a reference without a name is ignored",
			given: v1beta2.UserCredentialsContext{
				SecretRef: ref("team-a", ""),
			},
			want: own,
		},
		{name: "without credentials there is no identity", want: noIdentity},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraveller(t, VCDCluster())
			old := capvcdCluster()
			old.Spec.UserCredentialsContext = tt.given
			tr.name(old)

			hub, _ := tr.convert(old, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

			tr.Expect(hub.Spec.IdentityRef).To(Equal(infrav1.IdentityReference{
				Kind: infrav1.NamespacedIdentity,
				Name: tt.want,
			}))
			again, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
			tr.Expect(again.Spec).To(Equal(old.Spec))
			tr.expectNoCredentials(hub, again)

			if hub.Spec.CAPVCDCredentials == nil {
				return
			}
			hub.Spec.CAPVCDCredentials = nil
			moved, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)
			tr.Expect(moved.Spec.UserCredentialsContext).To(Equal(v1beta2.UserCredentialsContext{
				SecretRef: ref("team-a", tt.want),
			}), "they are only in the identity's Secret")
			tr.Expect(json.Marshal(moved)).NotTo(ContainSubstring(canary))
			back, _ := tr.convert(moved, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)
			tr.Expect(back.Spec).To(Equal(hub.Spec))
		})
	}
}

func TestTemplateCredentialsAreNeverWrittenToAnnotations(t *testing.T) {
	tr := newTraveller(t, VCDClusterTemplate())
	old := &v1beta2.VCDClusterTemplate{ObjectMeta: named("class")}
	old.Spec.Template.Spec.UserCredentialsContext.Password = canary
	old.Spec.Template.Spec.RDEID = entity
	tr.name(old)

	hub, _ := tr.convert(old, &infrav1.VCDClusterTemplate{}).(*infrav1.VCDClusterTemplate)
	again, _ := tr.convert(hub, &v1beta2.VCDClusterTemplate{}).(*v1beta2.VCDClusterTemplate)

	tr.Expect(hub.Spec.Template.Spec.CAPVCDCredentials.Password).To(Equal(canary))
	tr.Expect(again.Spec).To(Equal(old.Spec))
	tr.expectNoCredentials(hub, again)
}

func TestCredentialsChangedRepeatedly(t *testing.T) {
	tests := []struct {
		name     string
		change   func(given *v1beta2.UserCredentialsContext)
		want     *infrav1.CAPVCDCredentials
		identity string
	}{
		{
			name:     "another password",
			change:   func(given *v1beta2.UserCredentialsContext) { given.Password = "other" },
			want:     &infrav1.CAPVCDCredentials{Username: "admin", Password: "other"},
			identity: "demo-capvcd-credentials",
		},
		{
			name: "a Secret instead",
			change: func(given *v1beta2.UserCredentialsContext) {
				*given = v1beta2.UserCredentialsContext{SecretRef: &v1beta2.SecretReference{Name: "vcd"}}
			},
			want:     &infrav1.CAPVCDCredentials{SecretRef: &infrav1.CAPVCDSecretReference{Name: "vcd"}},
			identity: "demo-capvcd-credentials",
		},
		{
			name:     "none",
			change:   func(given *v1beta2.UserCredentialsContext) { *given = v1beta2.UserCredentialsContext{} },
			identity: noIdentity,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraveller(t, VCDCluster())
			old := capvcdCluster()
			old.Spec.UserCredentialsContext = v1beta2.UserCredentialsContext{Username: "admin", Password: canary}
			tr.name(old)
			hub := tr.convert(old, &infrav1.VCDCluster{})
			read, _ := tr.convert(hub, &v1beta2.VCDCluster{}).(*v1beta2.VCDCluster)

			tt.change(&read.Spec.UserCredentialsContext)
			after, _ := tr.convert(read, &infrav1.VCDCluster{}).(*infrav1.VCDCluster)

			tr.Expect(after.Spec.CAPVCDCredentials).To(Equal(tt.want))
			tr.Expect(after.Spec.IdentityRef.Name).To(Equal(tt.identity))
			tr.expectNoCredentials(after)
		})
	}
}

// expectNoCredentials checks that no annotation contains the password or token.
func (tr *traveller) expectNoCredentials(objects ...object) {
	tr.t.Helper()
	for _, o := range objects {
		tr.Expect(json.Marshal(o.GetAnnotations())).NotTo(ContainSubstring(canary))
	}
}
