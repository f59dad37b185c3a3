// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// flushEvery is the interval between attempts to store a token.
const flushEvery = 2 * time.Second

// A TokenStore stores the token of a service account. VCD replaces the token with each login and accepts only the
// latest one, so only one process may use it.
type TokenStore interface {
	// Load returns the token for the next login. It reads the current token, not a cached one, and first checks as well
	// as it can that the store can write the token after it. The login returns its errors, wrapped.
	Load(ctx context.Context) (string, error)
	// Store saves the token that VCD issued in exchange for old, and returns once the token is durable. It fails with
	// [failure.ErrConflict] if the store contains a token other than old: a new token has replaced it and is kept.
	Store(ctx context.Context, old, token string) error
}

// A ServiceAccount logs in with a token that changes with each login, one login at a time. Sessions of several
// organizations may share it, but only within one [Pool] of one process.
type ServiceAccount struct {
	tokens TokenStore

	mu      sync.Mutex               // held from reading a token until its successor is stored
	old     string                   // token in the store while next is not stored
	next    string                   // token that could not be stored yet, or empty
	tried   time.Time                // time of the last attempt to store next
	refused map[tokenEndpoint]string // last token that each endpoint rejected
}

// A tokenEndpoint is the place where a token is exchanged. A token that one endpoint rejects may be valid at another.
type tokenEndpoint struct{ site, org string }

// NewServiceAccount returns a service account whose token is in a store.
func NewServiceAccount(tokens TokenStore) *ServiceAccount {
	return &ServiceAccount{tokens: tokens, refused: map[tokenEndpoint]string{}}
}

// Rest calls do while no login is in flight and every token that VCD issued is stored. If a token cannot be stored,
// Rest returns the error and does not call do.
func (a *ServiceAccount) Rest(ctx context.Context, do func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != "" {
		if err := a.write(ctx); err != nil {
			return err
		}
	}
	return do()
}

// flush stores a token that could not be stored when it was issued. It does not wait for a login in flight, which
// stores the token itself.
func (a *ServiceAccount) flush(ctx context.Context, now time.Time) {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	if a.next == "" || now.Sub(a.tried) < flushEvery {
		return
	}
	a.tried = now
	_ = a.write(ctx) // retried with the next request
}

// write stores the latest token that VCD issued. The caller holds the lock.
func (a *ServiceAccount) write(ctx context.Context) error {
	err := a.tokens.Store(ctx, a.old, a.next)
	switch {
	case err == nil, errors.Is(err, failure.ErrConflict): // the token of another process is newer
		a.old = ""
		a.next = ""
		return nil
	}
	return fmt.Errorf("storing the next token of the service account: %w", err)
}

// nextToken returns the token for the next login. The caller holds the lock.
func (a *ServiceAccount) nextToken(ctx context.Context, at tokenEndpoint) (string, error) {
	if a.next != "" {
		_ = a.write(ctx) // retried with every request; until then only this process has the token
	}
	if a.next != "" && a.next != a.refused[at] {
		return a.next, nil
	}
	token, err := a.tokens.Load(ctx)
	switch {
	case err != nil:
		return "", &storeError{err}
	case token == "":
		return "", errNoToken
	case token == a.refused[at], token == a.old:
		return "", errTokenRefused
	}
	return token, nil
}

// exchange makes one attempt to log in. The caller holds the lock.
func (a *ServiceAccount) exchange(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	org, _ := as.identity()
	at := tokenEndpoint{via.Site.Base, org}
	old, err := a.nextToken(ctx, at)
	if err != nil {
		return token{}, err
	}
	as.Credentials.APIToken = old
	t, next, err := exchangeToken(ctx, via, as, version)
	if err != nil {
		if status, ok := errors.AsType[*failure.StatusError](err); ok && refusesCredentials(status) {
			a.refused[at] = old
			return token{}, errTokenRefused
		}
		return token{}, err
	}
	if next != "" && next != old {
		if a.next != old {
			a.old = old // otherwise the store still has an older token
		}
		a.next = next
		a.tried = via.Site.Clock.Now()
		_ = a.write(context.WithoutCancel(ctx)) // flush retries
	}
	return t, nil
}

// loginByServiceAccount exchanges the token for an access token and the next token, and immediately stores the next
// token. If storing fails, every request retries it. Until then, the token is lost if the process dies.
func loginByServiceAccount(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	a := as.ServiceAccount
	a.mu.Lock()
	defer a.mu.Unlock()
	t, err := a.exchange(ctx, via, as, version)
	if errors.Is(err, errTokenRefused) { // The previous process may just have stored a newer one.
		t, err = a.exchange(ctx, via, as, version)
	}
	return t, err
}

// A tokenError means that there is no token to log in with. A user must store a new one.
type tokenError struct{ reason string }

var (
	errNoToken      = &tokenError{"the service account has no token"}
	errTokenRefused = &tokenError{"the token of the service account was rejected: grant the service account again, and store the new token"}
)

// Error implements error.
func (e *tokenError) Error() string { return e.reason }

// Unwrap lets [errors.Is] match the sentinel.
func (e *tokenError) Unwrap() error { return failure.ErrUnauthorized }

// A storeError means that the store could not be read. It is no evidence about the site.
type storeError struct{ err error }

// Error implements error.
func (e *storeError) Error() string {
	return "reading the token of the service account: " + e.err.Error()
}

// Unwrap lets [errors.Is] match the sentinel and the error of the store.
func (e *storeError) Unwrap() []error { return []error{failure.ErrUnavailable, e.err} }
