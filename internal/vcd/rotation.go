package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// flushEvery is how often it is tried again to write down a token.
const flushEvery = 2 * time.Second

// A TokenStore keeps the token of a service account. VCD replaces it with each login, and knows only the last: whoever has it
// must be the only one who uses it.
type TokenStore interface {
	// Load returns the token for the next login.
	Load(ctx context.Context) (string, error)
	// Store writes down the token that VCD gave for old, and returns when it cannot be lost any more. It fails with
	// [ErrConflict] if another token than old is there: somebody has begun anew, and theirs stays.
	Store(ctx context.Context, old, token string) error
}

// A ServiceAccount logs in with a token that changes with each login. One of them may be used by one [Pool] of one process.
type ServiceAccount struct {
	tokens TokenStore

	mu      sync.Mutex // held from the reading of a token until the next one is written
	old     string     // what the store has while next is not written
	next    string     // what could not be written yet; empty: nothing
	tried   time.Time  // when it was tried last
	refused string     // a token that VCD does not know
}

// NewServiceAccount returns a service account with its token in a store.
func NewServiceAccount(tokens TokenStore) *ServiceAccount { return &ServiceAccount{tokens: tokens} }

// flush writes down a token that could not be written when it was given.
func (a *ServiceAccount) flush(ctx context.Context, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == "" || now.Sub(a.tried) < flushEvery {
		return nil
	}
	a.tried = now
	return a.write(ctx)
}

// write writes down the token that VCD gave last. The lock is held.
func (a *ServiceAccount) write(ctx context.Context) error {
	err := a.tokens.Store(ctx, a.old, a.next)
	switch {
	case err == nil, errors.Is(err, ErrConflict): // what somebody else wrote is newer than ours
		a.old, a.next = "", ""
		return nil
	}
	return fmt.Errorf("writing down the next token of the service account: %w", err)
}

// take returns the token to log in with. The lock is held.
func (a *ServiceAccount) take(ctx context.Context) (string, error) {
	if a.next != "" {
		_ = a.write(ctx) // tried again with every call; until it works nobody else has the token
	}
	if a.next != "" {
		return a.next, nil
	}
	token, err := a.tokens.Load(ctx)
	switch {
	case err != nil:
		return "", &connectionError{ErrUnavailable, "reading the token of the service account: " + err.Error()}
	case token == "":
		return "", &connectionError{ErrUnauthorized, "there is no token of the service account"}
	case token == a.refused:
		return "", &connectionError{ErrUnauthorized, "the token of the service account was refused: grant it anew, and write that token down"}
	}
	return token, nil
}

// loginByServiceAccount trades the token for an access token and the next token, and writes that down before anything else is
// done. Where that fails, it is tried again with every call; until then the process must not die.
func loginByServiceAccount(ctx context.Context, transport http.RoundTripper, s *site, config Config, version string) (token, error) {
	a := config.ServiceAccount
	a.mu.Lock()
	defer a.mu.Unlock()
	old, err := a.take(ctx)
	if err != nil {
		return token{}, err
	}
	config.Credentials.APIToken = old
	t, next, err := tradeToken(ctx, transport, s, config, version)
	if err != nil {
		if status, ok := errors.AsType[*StatusError](err); ok && status.refusesCredentials() {
			a.refused = old
		}
		return token{}, err
	}
	if next != "" && next != old {
		if a.next != old {
			a.old = old // else the store still has the one before
		}
		a.next, a.tried = next, s.clock.Now()
		_ = a.write(context.WithoutCancel(ctx)) // tried again by flush
	}
	return t, nil
}
