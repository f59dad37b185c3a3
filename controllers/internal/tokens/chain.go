// SPDX-License-Identifier: Apache-2.0

// Package tokens keeps the tokens of service accounts in Secrets. Each login rotates the token, so only one client may use it.
package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// Manager is the holder of a token that the manager itself uses. Other holders are the IDs of clusters, for
	// their cloud controller managers.
	Manager = "manager"
	// fingerprintLength is how many bytes of a hash distinguish tokens without revealing them.
	fingerprintLength = 16
)

// A Chain is the annotation of a Secret about its service account token. It contains tokens as fingerprints.
type Chain struct {
	Holder  string `json:"holder,omitempty"`  // the only client of the token; empty: it is unused
	First   string `json:"first"`             // the token that a user wrote
	Last    string `json:"last"`              // the current token in the Secret, which VCD issued in exchange for earlier ones
	Trading string `json:"trading,omitempty"` // the token with which a login began whose end was not recorded
}

// ChainOf reads the annotation. An unknown token was written by a user and starts a new chain. The chain is outdated if
// the Secret has the first token again although VCD has rotated it.
func ChainOf(secret *corev1.Secret) (chain Chain, outdated bool) {
	token := tokenIn(secret)
	if token == "" {
		return Chain{}, false
	}
	is := fingerprint(token)
	err := json.Unmarshal([]byte(secret.Annotations[infrav1.TokenChainAnnotation]), &chain)
	switch {
	case err == nil && chain.Last == is:
		return chain, false
	case err == nil && chain.First == is:
		return chain, true
	}
	return Chain{First: is, Last: is}, false
}

// write puts the annotation on a Secret.
func (c Chain) write(secret *corev1.Secret) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", infrav1.TokenChainAnnotation, err)
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[infrav1.TokenChainAnnotation] = string(raw)
	return nil
}

// fingerprint returns a hash that distinguishes tokens. It does not reveal them, because tokens are random and long.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:fingerprintLength])
}

// tokenKey returns the key of the API token in a Secret.
func tokenKey(secret *corev1.Secret) string {
	if strings.TrimSpace(string(secret.Data[infrav1.SecretAPIToken])) != "" {
		return infrav1.SecretAPIToken
	}
	return infrav1.SecretRefreshToken
}

// tokenIn returns the API token in a Secret; empty if it has none. It trims white space, which editors may add.
func tokenIn(secret *corev1.Secret) string {
	return strings.TrimSpace(string(secret.Data[tokenKey(secret)]))
}

// Problem returns why holder cannot use a Secret for an identity of the given type. Each login with a service
// account rotates its token, so only one client may use it.
func Problem(kind infrav1.CredentialType, secret *corev1.Secret, holder string) phases.Result {
	chain, outdated := ChainOf(secret)
	key := client.ObjectKeyFromObject(secret)
	switch {
	case kind != infrav1.CredentialServiceAccount && chain.Holder != "":
		return phases.Stop(infrav1.TokenInUseReason,
			"Secret %s holds a service account token that %s uses. Each login rotates the token: set another Secret in spec.secretRef of the identity, or set its spec.type to ServiceAccount",
			key, holderName(chain.Holder))
	case kind != infrav1.CredentialServiceAccount:
		return phases.Done
	case outdated:
		return phases.Stop(infrav1.TokenOutdatedReason,
			"Secret %s was reset to an old token, which VCD has replaced: ensure that no other tool writes the Secret, grant the service account again, and store the new token", key)
	case chain.Holder != "" && chain.Holder != holder:
		return phases.Stop(infrav1.TokenInUseReason,
			"Secret %s holds a service account token that %s uses, and only one client may use it: set another identity, or grant the service account again and store the new token",
			key, holderName(chain.Holder))
	// Only the data of the Secret is immutable: the annotation could be written before the login, but not the next
	// token.
	case holder == Manager && ptr.Deref(secret.Immutable, false):
		return phases.Stop(infrav1.TokenNotWritableReason,
			"Secret %s is immutable, so the next token of the service account cannot be stored: recreate the Secret without the field immutable", key)
	}
	return phases.Done
}

func holderName(holder string) string {
	if holder == Manager {
		return "the manager"
	}
	return "the cloud controller manager of cluster " + holder
}
