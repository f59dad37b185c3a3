// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"errors"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// trustPoll is for a site whose certificate is not trusted, which may get its former certificate back.
	trustPoll = 20 * time.Second
	// loginPoll is for rejected credentials. Credentials that never worked are tried once per version of their Secret,
	// others with growing delays.
	loginPoll = 10 * time.Minute
	// tokenPoll is the delay after VCD rejected a token. A previous instance of the manager may just have used the
	// token and may be about to store the next one. VCD is not queried for that.
	tokenPoll = 35 * time.Second
)

// LoginProblem maps the failure to open a session to a result with its remedy. It returns errors that are unrelated to
// the credentials or the site.
func LoginProblem(err error, site, identity string) (phases.Result, error) {
	out, err := loginProblem(err, site, identity)
	return out.NoAccess(), err
}

func loginProblem(err error, site, identity string) (phases.Result, error) {
	if problem, ok := errors.AsType[*tokens.StoreError](err); ok {
		return problem.Result, problem.Err
	}
	switch {
	case errors.Is(err, vcd.ErrUnauthorized):
		return phases.Fail(loginPoll, infrav1.CredentialsRejectedReason,
			"%s rejects the credentials of %s (%v): correct username and password, or apiToken, in its Secret, or correct spec.org", site, identity, err), nil
	case errors.Is(err, vcd.ErrTLS):
		return phases.Fail(trustPoll, infrav1.CertificateNotTrustedReason,
			"The certificate of %s is not trusted (%v): add its certificate authority to spec.tls.caBundle of %s, or to ca.crt in its Secret", site, err, identity), nil
	case errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(intervals.Remedy, infrav1.ForbiddenReason,
			"%s denies access to %s (%v): check spec.org and the rights of the user", site, identity, err), nil
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
		return phases.Fail(intervals.Remedy, infrav1.SiteInvalidReason,
			"%s cannot be used (%v): check spec.site and spec.org", site, err), nil
	}
	return problems.OfRequest(err)
}
