// SPDX-License-Identifier: Apache-2.0

package login

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Credentials that VCD refused are tried again after ten minutes, then after twice as long each time, up to an hour:
// few enough logins for no account to be locked.
const (
	firstRefusal = 10 * time.Minute
	lastRefusal  = time.Hour
	// tokenCheck is how often the store is asked for another token of a service account. VCD is not asked for that.
	tokenCheck = 30 * time.Second
)

// A refusal is VCD's refusal of a login; the zero value is none.
type refusal struct {
	err   error
	until time.Time // when to try again; zero: never
}

// at returns why no login is tried at a time, or nil.
func (r refusal) at(now time.Time) error {
	if r.until.IsZero() || now.Before(r.until) {
		return r.err
	}
	return nil
}

// refuse notes that VCD refused the credentials of a version. Those that never worked are wrong until they are changed;
// those that did may be right again, such as when a directory behind VCD comes back. A service account knows itself
// which token was refused, and tries no token twice. The lock is held.
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

// refusesVersion reports whether VCD, or one of its cells, does not take the API version of a call.
func refusesVersion(err error) bool {
	status, ok := errors.AsType[*failure.StatusError](err)
	return ok && status.Status == http.StatusNotAcceptable
}

// refusesCredentials reports whether a login failed because of the credentials. To a wrong API token, the OAuth
// endpoint answers 400 (RFC 6749, 5.2).
func refusesCredentials(e *failure.StatusError) bool {
	return e.Status == http.StatusUnauthorized ||
		e.Status == http.StatusBadRequest &&
			(strings.HasPrefix(e.Message, "invalid_grant") || strings.HasPrefix(e.Message, "invalid_client"))
}
