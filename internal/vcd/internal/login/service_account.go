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

// flushEvery is how often it is tried again to write down a token.
const flushEvery = 2 * time.Second

// A TokenStore keeps the token of a service account. VCD replaces it with each login, and knows only the last, so
// only one process may use it.
type TokenStore interface {
	// Load returns the token for the next login, as it is now and not as it was remembered, once the store is as sure
	// as it can be that it can write down the one after it. Its errors come back from the login, wrapped.
	Load(ctx context.Context) (string, error)
	// Store writes down the token that VCD gave for old, and returns when it cannot be lost any more. It fails with
	// [failure.ErrConflict] if another token than old is there: it was replaced by a new one, which stays.
	Store(ctx context.Context, old, token string) error
}

// A ServiceAccount logs in with a token that changes with each login, one login at a time. Sessions of several
// organizations may share it, but all of one [Pool] of one process.
type ServiceAccount struct {
	tokens TokenStore

	mu      sync.Mutex      // held from the reading of a token until the next one is written
	old     string          // what the store has while next is not written
	next    string          // what could not be written yet; empty: nothing
	tried   time.Time       // when it was tried last
	refused map[door]string // what VCD does not know
}

// A door is where a token is traded: one that is refused at one may be right at another.
type door struct{ site, org string }

// NewServiceAccount returns a service account with its token in a store.
func NewServiceAccount(tokens TokenStore) *ServiceAccount {
	return &ServiceAccount{tokens: tokens, refused: map[door]string{}}
}

// Rest calls do while no login is in flight, after all that VCD gave is written down; not at all if that fails.
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

// flush writes down a token that could not be written when it was given. It does not wait for a login, which does so
// itself.
func (a *ServiceAccount) flush(ctx context.Context, now time.Time) {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	if a.next == "" || now.Sub(a.tried) < flushEvery {
		return
	}
	a.tried = now
	_ = a.write(ctx) // tried again with the next call
}

// write writes down the token that VCD gave last. The lock is held.
func (a *ServiceAccount) write(ctx context.Context) error {
	err := a.tokens.Store(ctx, a.old, a.next)
	switch {
	case err == nil, errors.Is(err, failure.ErrConflict): // what another process wrote is newer
		a.old = ""
		a.next = ""
		return nil
	}
	return fmt.Errorf("storing the next token of the service account: %w", err)
}

// take returns the token to log in with. The lock is held.
func (a *ServiceAccount) take(ctx context.Context, at door) (string, error) {
	if a.next != "" {
		_ = a.write(ctx) // tried again with every call; until it works no other process has the token
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

// trade makes one attempt to log in. The lock is held.
func (a *ServiceAccount) trade(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	org, _ := as.identity()
	at := door{via.Site.Base, org}
	old, err := a.take(ctx, at)
	if err != nil {
		return token{}, err
	}
	as.Credentials.APIToken = old
	t, next, err := tradeToken(ctx, via, as, version)
	if err != nil {
		if status, ok := errors.AsType[*failure.StatusError](err); ok && refusesCredentials(status) {
			a.refused[at] = old
			return token{}, errTokenRefused
		}
		return token{}, err
	}
	if next != "" && next != old {
		if a.next != old {
			a.old = old // else the store still has the one before
		}
		a.next = next
		a.tried = via.Site.Clock.Now()
		_ = a.write(context.WithoutCancel(ctx)) // tried again by flush
	}
	return t, nil
}

// loginByServiceAccount trades the token for an access token and the next token, and writes that down before anything
// else is done. Where that fails, it is tried again with every call; until then the process must not die.
func loginByServiceAccount(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	a := as.ServiceAccount
	a.mu.Lock()
	defer a.mu.Unlock()
	t, err := a.trade(ctx, via, as, version)
	if errors.Is(err, errTokenRefused) { // The process before us may just have written down a newer one.
		t, err = a.trade(ctx, via, as, version)
	}
	return t, err
}

// A tokenError means that there is no token to log in with: a new one has to be stored.
type tokenError struct{ reason string }

var (
	errNoToken      = &tokenError{"the service account has no token"}
	errTokenRefused = &tokenError{"the token of the service account was rejected: grant the service account " +
		"again, and store the new token"}
)

// Error implements error.
func (e *tokenError) Error() string { return e.reason }

// Unwrap lets [errors.Is] match the sentinel.
func (e *tokenError) Unwrap() error { return failure.ErrUnauthorized }

// A storeError means that the store gave no token, which is no evidence about the site.
type storeError struct{ err error }

// Error implements error.
func (e *storeError) Error() string {
	return "reading the token of the service account: " + e.err.Error()
}

// Unwrap lets [errors.Is] match the sentinel, and callers find the store's own error.
func (e *storeError) Unwrap() []error { return []error{failure.ErrUnavailable, e.err} }
