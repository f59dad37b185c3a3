// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkAccess logs in.
func checkAccess(ctx context.Context, s *survey) {
	session, err := s.open(ctx)
	if err != nil {
		s.accessProblem(err)
		return
	}
	s.session = session
	user, err := session.User(ctx)
	switch {
	case err != nil:
		s.accessProblem(err)
	default:
		s.fact("%s, organization %s, user %s", session.Site(), session.Org(), user)
	}
}

func (s *survey) accessProblem(err error) {
	found, isLookup := errors.AsType[*vcd.LookupError](err)
	switch {
	case errors.Is(err, vcd.ErrTLS):
		s.problem("give the certificate of the authority that signed it: spec.tls.caBundle of the identity, or "+
			"--ca-file", "the certificate of the site is not trusted: %v", err)
	case isLookup && found.Kind == "API version":
		s.problem("upgrade VMware Cloud Director to 10.4.2 or later", "%s", found)
	case isLookup:
		s.problem("correct the address of the site", "%s", found)
	case errors.Is(err, vcd.ErrUnauthorized):
		s.problem("correct the organization, user name and password, or make a new API token",
			"VCD refuses the credentials: %v", err)
	case errors.Is(err, vcd.ErrForbidden):
		s.problem("enable the user and the organization in VCD", "the user may not log in: %v", err)
	default:
		s.problem("correct the address, or make the network, proxy and DNS lead to the site",
			"the site does not answer as VCD: %v", err)
	}
}

// checkLease reports leases that stop or delete nodes.
func checkLease(ctx context.Context, s *survey) {
	leases, known, err := s.session.Leases(ctx)
	switch {
	case err != nil:
		s.unread(err, "reading the leases of the organization", "check again later")
	case !known:
		s.fact("the user may not read the longest leases of the organization")
	case leases.Runtime > 0 || leases.Storage > 0:
		s.warn("set both leases of vApps in the policies of the organization to never expire",
			"organization %s limits leases of vApps (runtime: %s, storage: %s): VCD stops and deletes nodes whose "+
				"lease ends while the manager cannot renew it", s.session.Org(), leaseText(leases.Runtime),
			leaseText(leases.Storage))
	}
}

func leaseText(d time.Duration) string {
	if d == 0 {
		return "never expires"
	}
	return d.String()
}
