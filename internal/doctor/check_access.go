// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// logIn opens a session and reports its site, organization and user.
func logIn(ctx context.Context, open Opener) (*vcd.Session, findings) {
	session, err := open(ctx)
	if err != nil {
		return nil, accessProblem(err)
	}
	user, err := session.User(ctx)
	if err != nil {
		return session, accessProblem(err)
	}
	var f findings
	f.fact("%s, organization %s, user %s", session.Site(), session.Org(), user)
	return session, f
}

func accessProblem(err error) findings {
	var f findings
	found, isLookup := errors.AsType[*vcd.LookupError](err)
	switch {
	case errors.Is(err, vcd.ErrTLS):
		f.problem("add its certificate authority to spec.tls.caBundle of the identity (VCD_CA_BUNDLE_B64 of the cluster templates), or set a PEM file in --ca-file or VCD_CA_FILE", "%v", err)
	case isLookup && found.Kind == "API version":
		f.problem("upgrade VMware Cloud Director to 10.4.2 or later", "%s", found)
	case isLookup:
		f.problem("correct the address of the site", "%s", found)
	case errors.Is(err, vcd.ErrUnauthorized):
		f.problem("correct the organization, user name and password, or create a new API token",
			"VCD rejects the credentials: %v", err)
	case errors.Is(err, vcd.ErrForbidden):
		f.problem("enable the user and the organization in VCD", "the user may not log in: %v", err)
	default:
		f.problem("correct the address, or check the network, proxy and DNS",
			"the site does not respond like VCD: %v", err)
	}
	return f
}

// checkLease reports leases that would stop or delete nodes.
func checkLease(ctx context.Context, in *vcd.Session) findings {
	var f findings
	leases, known, err := in.Leases(ctx)
	switch {
	case err != nil:
		f.unread(err, "reading the leases of the organization", "run doctor again later")
	case !known:
		f.fact("the maximum leases of the organization are not readable for the user")
	case leases.Runtime > 0 || leases.Storage > 0:
		f.warn("set both leases of vApps in the policies of the organization to never expire",
			"organization %s limits leases of vApps (runtime: %s, storage: %s): VCD stops and deletes nodes whose lease expires while the manager cannot renew it", in.Org(), leaseText(leases.Runtime),
			leaseText(leases.Storage))
	}
	return f
}

func leaseText(d time.Duration) string {
	if d == 0 {
		return "never expires"
	}
	return d.String()
}
