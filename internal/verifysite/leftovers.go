// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	firewallPath = "/cloudapi/2.0.0/edgeGateways/"
	gatewayPath  = "/cloudapi/1.0.0/edgeGateways/"
	servicePath  = "/cloudapi/1.0.0/loadBalancer/virtualServices"
	poolPath     = "/cloudapi/1.0.0/loadBalancer/pools"
	profilePath  = "/cloudapi/1.0.0/applicationPortProfiles"
	groupPath    = "/cloudapi/1.0.0/firewallGroups"
	entityPath   = "/cloudapi/1.0.0/entities"
)

// A Leftover is an object with the marker of a run.
type Leftover struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`
	Name string `json:"name"`

	kind kind
	id   string
	path string // path of the object
	// version is the API version in which the object is read; empty means the agreed version.
	version string
}

// A place lists the VDCs and gateways that may contain leftovers.
type place struct {
	vdcs     []vcd.Ref
	gateways []string // URNs
}

// removal is the order in which kinds of objects are removed: objects before those that they use.
var removal = []kind{
	kindService, kindPool, kindNAT, kindProfile, kindGroup, kindFirewall, kindEntity, kindVApp, kindDisk,
}

// A remover finds and removes objects with the marker of a run.
type remover struct {
	calls    caller
	run      string   // current run; empty: none
	versions []string // API versions that the site offers, oldest first
}

// Leftovers returns the objects of runs that remain in the organization, in the order of removal. hidden are the kinds
// that are not visible to the user.
func Leftovers(ctx context.Context, s *vcd.Session) (left []Leftover, hidden []string, err error) {
	m := remover{calls: caller{session: s, poll: defaultPoll}}
	if m.versions, err = s.OfferedVersions(ctx); err != nil {
		return nil, nil, err
	}
	where := place{}
	if where.vdcs, err = s.VDCs.List(ctx); err != nil {
		return nil, nil, err
	}
	gateways, err := s.Gateways.Visible(ctx)
	if ignoreHidden(err) != nil {
		return nil, nil, err
	}
	for _, g := range gateways {
		where.gateways = append(where.gateways, g.ID)
	}
	for _, k := range removal {
		found, err := m.find(ctx, k, where)
		if ignoreHidden(err) != nil {
			return nil, nil, fmt.Errorf("looking for %s: %w", k, err)
		}
		if errors.Is(err, vcd.ErrForbidden) {
			hidden = append(hidden, string(k))
		}
		left = append(left, found...)
	}
	return left, hidden, nil
}

// CleanUp removes leftovers. It reads each again before it removes it.
func CleanUp(ctx context.Context, s *vcd.Session, left []Leftover, o Options) error {
	m := remover{calls: caller{session: s, poll: cmp.Or(o.Poll, defaultPoll)}}
	var errs []error
	for _, x := range left {
		o.step("Removing " + x.Name)
		if err := m.removeOne(ctx, x); err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", x.Name, err))
		}
	}
	return errors.Join(errs...)
}
