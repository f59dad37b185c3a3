// SPDX-License-Identifier: Apache-2.0

package session

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
	// ManagerHolds is the holder of a token that this provider's manager uses itself. Others are ids of clusters, for
	// their cloud controller managers.
	ManagerHolds = "manager"
	// fingerprintLength is how much of a hash distinguishes tokens without revealing them.
	fingerprintLength = 16
)

// A TokenChain is what an annotation of a Secret says of the token of a service account in it. Tokens are in it as
// fingerprints.
type TokenChain struct {
	Holder  string `json:"holder,omitempty"`  // the only user of the token; empty: it is unused
	First   string `json:"first"`             // the token that a person wrote
	Last    string `json:"last"`              // the one that came of it and is in the Secret now
	Trading string `json:"trading,omitempty"` // the one that a login began with whose end was not written down
}

// ChainOf reads the annotation. A token that it does not know was written by a person, and begins anew. It is outdated
// if the first one is back, although VCD gave others for it.
func ChainOf(secret *corev1.Secret) (chain TokenChain, outdated bool) {
	token := tokenIn(secret)
	if token == "" {
		return TokenChain{}, false
	}
	is := fingerprint(token)
	err := json.Unmarshal([]byte(secret.Annotations[infrav1.TokenChainAnnotation]), &chain)
	switch {
	case err == nil && chain.Last == is:
		return chain, false
	case err == nil && chain.First == is:
		return chain, true
	}
	return TokenChain{First: is, Last: is}, false
}

// write puts the annotation on a Secret.
func (c TokenChain) write(secret *corev1.Secret) error {
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

// fingerprint distinguishes tokens. Tokens are random and long, so it does not reveal them.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:fingerprintLength])
}

// tokenKey is the key of a Secret that has the API token.
func tokenKey(secret *corev1.Secret) string {
	if strings.TrimSpace(string(secret.Data[infrav1.SecretAPIToken])) != "" {
		return infrav1.SecretAPIToken
	}
	return infrav1.SecretRefreshToken
}

// tokenIn returns the API token in a Secret; empty if there is none. White space around it comes from editors.
func tokenIn(secret *corev1.Secret) string {
	return strings.TrimSpace(string(secret.Data[tokenKey(secret)]))
}

// tokenProblem says why a Secret cannot be used by holder for an identity of a type: each use of the token of a service
// account makes the one before worthless, so it has one user.
func tokenProblem(kind infrav1.CredentialType, secret *corev1.Secret, holder string) phases.Result {
	chain, outdated := ChainOf(secret)
	key := client.ObjectKeyFromObject(secret)
	switch {
	case kind != infrav1.CredentialServiceAccount && chain.Holder != "":
		return phases.Stop(infrav1.TokenInUseReason,
			"Secret %s holds a service account token that %s uses. Each login rotates the token: set another "+
				"Secret in spec.secretRef of the identity, or set its spec.type to ServiceAccount",
			key, holderName(chain.Holder))
	case kind != infrav1.CredentialServiceAccount:
		return phases.Done
	case outdated:
		return phases.Stop(infrav1.TokenOutdatedReason,
			"Secret %s was reset to an old token, which VCD has replaced: ensure that no other tool writes the "+
				"Secret, grant the service account again, and store the new token", key)
	case chain.Holder != "" && chain.Holder != holder:
		return phases.Stop(infrav1.TokenInUseReason,
			"Secret %s holds a service account token that %s uses, and only one client may use it: set another "+
				"identity, or grant the service account again and store the new token",
			key, holderName(chain.Holder))
	// Only its data is, so that this would show when it is too late.
	case holder == ManagerHolds && ptr.Deref(secret.Immutable, false):
		return phases.Stop(infrav1.TokenNotWritableReason,
			"Secret %s is immutable, so the next token of the service account cannot be stored: recreate the "+
				"Secret without the field immutable", key)
	}
	return phases.Done
}

func holderName(holder string) string {
	if holder == ManagerHolds {
		return "the manager"
	}
	return "the cloud controller manager of cluster " + holder
}
