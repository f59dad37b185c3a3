// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// chained returns a Secret with a token, and with the annotation about the chain of tokens.
func chained(token string, chain *Chain) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "token", UID: "uid-of-token"},
		Data:       map[string][]byte{infrav1.SecretAPIToken: []byte(token)},
	}
	if chain != nil {
		_ = chain.write(secret)
	}
	return secret
}

func immutable(secret *corev1.Secret) *corev1.Secret {
	secret.Immutable = ptr.To(true)
	return secret
}

func TestTokenChain(t *testing.T) {
	one := fingerprint("one")
	two := fingerprint("two")
	known := &Chain{Holder: Manager, First: one, Last: two}
	tests := []struct {
		name     string
		secret   *corev1.Secret
		want     Chain
		outdated bool
	}{
		{name: "an unused token starts a chain", secret: chained("one", nil), want: Chain{First: one, Last: one}},
		{name: "surrounding white space is ignored", secret: chained(" one\n", nil), want: Chain{First: one, Last: one}},
		{name: "the manager's token continues its chain", secret: chained("two", known), want: *known},
		{
			name:   "a user's token starts a new chain without a holder",
			secret: chained("three", known),
			want:   Chain{First: fingerprint("three"), Last: fingerprint("three")},
		},
		{name: "the first token is never restored", secret: chained("one", known), want: *known, outdated: true},
		{name: "an empty token is not a token", secret: chained("", known), want: Chain{}},
		{
			name: "an invalid annotation is ignored",
			secret: func() *corev1.Secret {
				s := chained("two", nil)
				s.Annotations = map[string]string{infrav1.TokenChainAnnotation: `{"holder":"me","last":5`}
				return s
			}(),
			want: Chain{First: two, Last: two},
		},
		{
			name:   "CAPVCD's key, too",
			secret: &corev1.Secret{Data: map[string][]byte{infrav1.SecretRefreshToken: []byte("one")}},
			want:   Chain{First: one, Last: one},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, outdated := ChainOf(tt.secret)

			g.Expect(got).To(Equal(tt.want))
			g.Expect(outdated).To(Equal(tt.outdated))
		})
	}
}

func TestATokenHasOneUser(t *testing.T) {
	one := fingerprint("one")
	two := fingerprint("two")
	managers := &Chain{Holder: Manager, First: one, Last: two}
	clusters := &Chain{Holder: "infra-1", First: two, Last: two}
	const account, user = infrav1.CredentialServiceAccount, infrav1.CredentialUser
	tests := []struct {
		name   string
		kind   infrav1.CredentialType
		secret *corev1.Secret
		holder string
		want   string
	}{
		{name: "the manager takes a new token", kind: account, secret: chained("two", nil), holder: Manager},
		{name: "so does a cloud controller manager", kind: account, secret: chained("two", nil), holder: "infra-1"},
		{name: "the manager continues with its own", kind: account, secret: chained("two", managers), holder: Manager},
		{name: "a cluster continues with its own", kind: account, secret: chained("two", clusters), holder: "infra-1"},
		{
			name:   "the manager's token is not given to a cluster",
			kind:   account,
			secret: chained("two", managers),
			holder: "infra-1",
			want:   infrav1.TokenInUseReason,
		},
		{name: "a cluster's token is not given to the manager", kind: account, secret: chained("two", clusters), holder: Manager, want: infrav1.TokenInUseReason},
		{
			name:   "a cluster's token is not given to another cluster",
			kind:   account,
			secret: chained("two", clusters),
			holder: "infra-2",
			want:   infrav1.TokenInUseReason,
		},
		{name: "a newly granted token is free", kind: account, secret: chained("three", clusters), holder: Manager},
		{
			name:   "an outdated token is not tried",
			kind:   account,
			secret: chained("one", managers),
			holder: Manager,
			want:   infrav1.TokenOutdatedReason,
		},
		{
			name:   "the manager does not take a token that it cannot save",
			kind:   account,
			secret: immutable(chained("two", nil)),
			holder: Manager,
			want:   infrav1.TokenNotWritableReason,
		},
		{name: "which others may not write", kind: account, secret: immutable(chained("two", nil)), holder: "infra-1"},
		{
			name:   "a rotating token is not used like a static one",
			kind:   user,
			secret: chained("two", managers),
			holder: Manager,
			want:   infrav1.TokenInUseReason,
		},
		{name: "nor hands it over as such", kind: user, secret: chained("two", clusters), holder: "infra-1", want: infrav1.TokenInUseReason},
		{name: "a user's token may be shared", kind: user, secret: chained("two", nil), holder: Manager},
		{name: "even in a Secret that had another token", kind: user, secret: chained("three", managers), holder: Manager},
		{name: "a password is not a token", kind: user, secret: &corev1.Secret{}, holder: Manager},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			out := Problem(tt.kind, tt.secret, tt.holder)

			g.Expect(out.Reason).To(Equal(tt.want), out.Message)
		})
	}
}
