// SPDX-License-Identifier: Apache-2.0

package login

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Credentials that VCD rejected are retried after ten minutes, and then after twice as long each time, up to an hour.
// That is rare enough not to lock an account.
const (
	firstRefusal = 10 * time.Minute
	lastRefusal  = time.Hour
	// tokenCheck is the interval between reads of the store for another token of a service account. These reads send no
	// requests to VCD.
	tokenCheck = 30 * time.Second
)

// A refusal is a rejected login. The zero value means that no login was rejected.
type refusal struct {
	err   error
	until time.Time // time of the next attempt; zero: never
}

// at returns the error that prevents a login at a time, or nil.
func (r refusal) at(now time.Time) error {
	if r.until.IsZero() || now.Before(r.until) {
		return r.err
	}
	return nil
}

// refuse records that VCD rejected a version of the credentials. Credentials that never worked are wrong until they are
// changed. Credentials that have worked may work again, for example when a directory behind VCD recovers. A service
// account records which token was rejected and tries no token twice. The caller holds the lock.
func (a *Authenticator) refuse(version string, err error) {
	if _, ok := errors.AsType[*tokenError](err); ok {
		a.refused[version] = refusal{err: err, until: a.site.Clock.Now().Add(tokenCheck)}
		return
	}
	status, ok := errors.AsType[*failure.StatusError](err)
	if wrong := ok && status.Status == http.StatusUnauthorized; wrong && !a.worked {
		a.refused[version] = refusal{err: err}
		return
	}
	wait := min(lastRefusal, firstRefusal<<min(a.refusals, 3))
	a.refusals++
	a.refused[version] = refusal{err: err, until: a.site.Clock.Now().Add(wait)}
}

// refusesVersion reports whether VCD, or one of its cells, rejected the API version of a request.
func refusesVersion(err error) bool {
	status, ok := errors.AsType[*failure.StatusError](err)
	return ok && status.Status == http.StatusNotAcceptable
}

// refusesCredentials reports whether a login failed because of the credentials. For a wrong API token, the OAuth
// endpoint returns 400 (RFC 6749, 5.2).
func refusesCredentials(e *failure.StatusError) bool {
	return e.Status == http.StatusUnauthorized ||
		e.Status == http.StatusBadRequest &&
			(strings.HasPrefix(e.Message, "invalid_grant") || strings.HasPrefix(e.Message, "invalid_client"))
}
