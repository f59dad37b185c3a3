// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// chained returns a Secret with a token, and with the annotation about the chain of tokens.
func chained(token string, chain *TokenChain) *corev1.Secret {
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
	known := &TokenChain{Holder: ManagerHolds, First: one, Last: two}
	tests := []struct {
		name     string
		secret   *corev1.Secret
		want     TokenChain
		outdated bool
	}{
		{"an unused token starts a chain", chained("one", nil), TokenChain{First: one, Last: one}, false},
		{"surrounding white space is ignored", chained(" one\n", nil), TokenChain{First: one, Last: one}, false},
		{"the manager's token continues its chain", chained("two", known), *known, false},
		{
			"a user's token starts a new chain without a holder",
			chained("three", known),
			TokenChain{First: fingerprint("three"), Last: fingerprint("three")},
			false,
		},
		{"the first token is never restored", chained("one", known), *known, true},
		{"an empty token is not a token", chained("", known), TokenChain{}, false},
		{
			"an invalid annotation is ignored",
			func() *corev1.Secret {
				s := chained("two", nil)
				s.Annotations = map[string]string{infrav1.TokenChainAnnotation: `{"holder":"me","last":5`}
				return s
			}(),
			TokenChain{First: two, Last: two},
			false,
		},
		{
			"CAPVCD's key, too",
			&corev1.Secret{Data: map[string][]byte{infrav1.SecretRefreshToken: []byte("one")}},
			TokenChain{First: one, Last: one},
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
	managers := &TokenChain{Holder: ManagerHolds, First: one, Last: two}
	clusters := &TokenChain{Holder: "infra-1", First: two, Last: two}
	const account, user = infrav1.CredentialServiceAccount, infrav1.CredentialUser
	tests := []struct {
		name   string
		kind   infrav1.CredentialType
		secret *corev1.Secret
		holder string
		want   string
	}{
		{"the manager takes a new token", account, chained("two", nil), ManagerHolds, ""},
		{"so does a cloud controller manager", account, chained("two", nil), "infra-1", ""},
		{"the manager continues with its own", account, chained("two", managers), ManagerHolds, ""},
		{"a cluster continues with its own", account, chained("two", clusters), "infra-1", ""},
		{
			"the manager's token is not given to a cluster",
			account,
			chained("two", managers),
			"infra-1",
			infrav1.TokenInUseReason,
		},
		{"a cluster's token is not given to the manager", account, chained("two", clusters), ManagerHolds, infrav1.TokenInUseReason},
		{
			"a cluster's token is not given to another cluster",
			account,
			chained("two", clusters),
			"infra-2",
			infrav1.TokenInUseReason,
		},
		{"a newly granted token is free", account, chained("three", clusters), ManagerHolds, ""},
		{
			"an outdated token is not tried",
			account,
			chained("one", managers),
			ManagerHolds,
			infrav1.TokenOutdatedReason,
		},
		{
			"the manager does not take a token that it cannot save",
			account,
			immutable(chained("two", nil)),
			ManagerHolds,
			infrav1.TokenNotWritableReason,
		},
		{"which others may not write", account, immutable(chained("two", nil)), "infra-1", ""},
		{
			"a rotating token is not used like a static one",
			user,
			chained("two", managers),
			ManagerHolds,
			infrav1.TokenInUseReason,
		},
		{"nor hands it over as such", user, chained("two", clusters), "infra-1", infrav1.TokenInUseReason},
		{"a user's token may be shared", user, chained("two", nil), ManagerHolds, ""},
		{"even in a Secret that had another token", user, chained("three", managers), ManagerHolds, ""},
		{"a password is not a token", user, &corev1.Secret{}, ManagerHolds, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			out := tokenProblem(tt.kind, tt.secret, tt.holder)

			g.Expect(out.Reason).To(Equal(tt.want), out.Message)
		})
	}
}
