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
		{"an unused token starts a chain", chained("one", nil), Chain{First: one, Last: one}, false},
		{"surrounding white space is ignored", chained(" one\n", nil), Chain{First: one, Last: one}, false},
		{"the manager's token continues its chain", chained("two", known), *known, false},
		{
			"a user's token starts a new chain without a holder",
			chained("three", known),
			Chain{First: fingerprint("three"), Last: fingerprint("three")},
			false,
		},
		{"the first token is never restored", chained("one", known), *known, true},
		{"an empty token is not a token", chained("", known), Chain{}, false},
		{
			"an invalid annotation is ignored",
			func() *corev1.Secret {
				s := chained("two", nil)
				s.Annotations = map[string]string{infrav1.TokenChainAnnotation: `{"holder":"me","last":5`}
				return s
			}(),
			Chain{First: two, Last: two},
			false,
		},
		{
			"CAPVCD's key, too",
			&corev1.Secret{Data: map[string][]byte{infrav1.SecretRefreshToken: []byte("one")}},
			Chain{First: one, Last: one},
			false,
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
		{"the manager takes a new token", account, chained("two", nil), Manager, ""},
		{"so does a cloud controller manager", account, chained("two", nil), "infra-1", ""},
		{"the manager continues with its own", account, chained("two", managers), Manager, ""},
		{"a cluster continues with its own", account, chained("two", clusters), "infra-1", ""},
		{
			"the manager's token is not given to a cluster",
			account,
			chained("two", managers),
			"infra-1",
			infrav1.TokenInUseReason,
		},
		{"a cluster's token is not given to the manager", account, chained("two", clusters), Manager, infrav1.TokenInUseReason},
		{
			"a cluster's token is not given to another cluster",
			account,
			chained("two", clusters),
			"infra-2",
			infrav1.TokenInUseReason,
		},
		{"a newly granted token is free", account, chained("three", clusters), Manager, ""},
		{
			"an outdated token is not tried",
			account,
			chained("one", managers),
			Manager,
			infrav1.TokenOutdatedReason,
		},
		{
			"the manager does not take a token that it cannot save",
			account,
			immutable(chained("two", nil)),
			Manager,
			infrav1.TokenNotWritableReason,
		},
		{"which others may not write", account, immutable(chained("two", nil)), "infra-1", ""},
		{
			"a rotating token is not used like a static one",
			user,
			chained("two", managers),
			Manager,
			infrav1.TokenInUseReason,
		},
		{"nor hands it over as such", user, chained("two", clusters), "infra-1", infrav1.TokenInUseReason},
		{"a user's token may be shared", user, chained("two", nil), Manager, ""},
		{"even in a Secret that had another token", user, chained("three", managers), Manager, ""},
		{"a password is not a token", user, &corev1.Secret{}, Manager, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			out := Problem(tt.kind, tt.secret, tt.holder)

			g.Expect(out.Reason).To(Equal(tt.want), out.Message)
		})
	}
}
