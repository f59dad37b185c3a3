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

// A Leftover is an object that carries the mark of a run.
type Leftover struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`
	Name string `json:"name"`

	kind kind
	id   string
	path string // of the object
	// version of the API in which it is read; empty: the agreed one
	version string
}

// A place is where leftovers may be.
type place struct {
	vdcs     []vcd.Ref
	gateways []string // URNs
}

// removal is the order in which kinds of objects are removed: users before what they use.
var removal = []kind{
	kindService, kindPool, kindNAT, kindProfile, kindGroup, kindFirewall, kindEntity, kindVApp, kindDisk,
}

// A remover finds objects that carry the mark of a run, and removes them.
type remover struct {
	calls    caller
	run      string   // the run that goes on; empty: none does
	versions []string // of the API that the site offers, oldest first
}

// Leftovers finds what runs left in the organization, in the order of its removal. Hidden are the kinds that the user is
// not shown.
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
	if unlessHidden(err) != nil {
		return nil, nil, err
	}
	for _, g := range gateways {
		where.gateways = append(where.gateways, g.ID)
	}
	for _, k := range removal {
		found, err := m.find(ctx, k, where)
		if unlessHidden(err) != nil {
			return nil, nil, fmt.Errorf("looking for %s: %w", k, err)
		}
		if errors.Is(err, vcd.ErrForbidden) {
			hidden = append(hidden, string(k))
		}
		left = append(left, found...)
	}
	return left, hidden, nil
}

// CleanUp removes leftovers, each after another look at it.
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
