// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// tokenKey is the key of the token in the Secret of a service account, the same as for VMware's CPI.
	tokenKey = "refreshToken"
	// tokenTimeout limits requests to the API server, because no login is possible in the meantime.
	tokenTimeout = 10 * time.Second
)

// A TokenSecret stores the token of a service account in a Secret that only this program writes.
type TokenSecret struct {
	secrets corev1client.SecretInterface
	name    string
}

var _ vcd.TokenStore = (*TokenSecret)(nil)

// NewTokenSecret returns a store for a token in a Secret.
func NewTokenSecret(secrets corev1client.SecretInterface, name string) *TokenSecret {
	return &TokenSecret{secrets: secrets, name: name}
}

// Load reads the token from the API server, because a mounted Secret may be outdated.
func (t *TokenSecret) Load(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	secret, err := t.secrets.Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", t.name, err)
	}
	return strings.TrimSpace(string(secret.Data[tokenKey])), nil
}

// Store writes the next token. It returns a conflict error if another client wrote one.
func (t *TokenSecret) Store(ctx context.Context, old, token string) error {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	for {
		secret, err := t.secrets.Get(ctx, t.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading Secret %s: %w", t.name, err)
		}
		if strings.TrimSpace(string(secret.Data[tokenKey])) != old {
			return fmt.Errorf("writing Secret %s: another client did: %w", t.name, vcd.ErrConflict)
		}
		secret.Data[tokenKey] = []byte(token)
		_, err = t.secrets.Update(ctx, secret, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("writing Secret %s: %w", t.name, err)
		}
	}
}
