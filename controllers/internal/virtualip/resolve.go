// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A Lookup resolves a name, as [net.Resolver.LookupNetIP] does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// lookupTimeout is how long to wait for a response of DNS.
const lookupTimeout = 3 * time.Second

// Resolve returns the IPv4 addresses of an endpoint's name, or a problem. kube-vip 0.9 does not start until the name
// resolves, and Cluster API reaches the cluster by the name, too. If lookup is nil, Resolve queries DNS.
func Resolve(ctx context.Context, lookup Lookup, name string) ([]netip.Addr, phases.Result) {
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := lookup(ctx, "ip4", name)
	var failed *net.DNSError
	switch {
	case err == nil && len(found) > 0:
		for i := range found {
			found[i] = found[i].Unmap()
		}
		return found, phases.Done
	case err == nil, errors.As(err, &failed) && failed.IsNotFound:
		return nil, phases.Fail(intervals.Remedy, infrav1.NameResolutionFailedReason, "DNS has no IPv4 address for %s: create the record with the address of the control plane before its machines are created, because kube-vip and Cluster API need it", name)
	}
	return nil, phases.Fail(intervals.Remedy, infrav1.NameResolutionFailedReason, "The manager cannot resolve %s: %v: check its DNS servers", name, lookupProblem(err))
}

// lookupProblem describes a failure of DNS without the address of the server, which may change with each attempt.
func lookupProblem(err error) string {
	var failed *net.DNSError
	switch {
	case errors.As(err, &failed) && failed.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case errors.As(err, &failed):
		return failed.Err
	}
	return err.Error()
}
