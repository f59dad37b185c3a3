// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/url"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const (
	// rightSeesAll shows all vApps, VMs and VDCs of the organization, of any owner.
	rightSeesAll = "General: Administrator View"
	// rightSeesVDCs shows VDCs.
	rightSeesVDCs = "Organization vDC: View"
	// rightSeesUnsharedVDCs shows also the VDCs that are shared with other users only.
	rightSeesUnsharedVDCs = "Access All Organization VDCs"
	// rightSeesGateways shows edge gateways.
	rightSeesGateways = "Organization vDC Gateway: View"
)

// RightConsolidate is the right to consolidate VMs, as VCD's API names it.
const RightConsolidate = "vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"

// A user is whom a session works as, as far as VCD shows it.
type user struct {
	client  *api.Client
	lookups *cache.Cache
}

// heldRights are the rights of a session's user; not known if the user may not read them.
type heldRights struct {
	names []string
	known bool
}

// MayHave reports whether the session's user may have a right: one of its roles does, or the user may not read them.
// They are read once for all who ask in a while.
func (s *Session) MayHave(ctx context.Context, right string) (bool, error) {
	if s.client.Provider {
		return true, nil
	}
	held, err := s.user.recentRights(ctx)
	return err == nil && (!held.known || slices.Contains(held.names, right)), err
}

// holds reports whether the roles of the session's user have some rights now. False if the user may not read them.
func (u *user) holds(ctx context.Context, rights ...string) (bool, error) {
	if u.client.Provider {
		return true, nil
	}
	held, err := u.rights(ctx)
	missing := func(right string) bool { return !slices.Contains(held.names, right) }
	return err == nil && held.known && !slices.ContainsFunc(rights, missing), err
}

// Rights returns the rights of the session's user; known is false if the user may not read them. A provider has all.
func (s *Session) Rights(ctx context.Context) (names []string, known bool, err error) {
	held, err := s.user.recentRights(ctx)
	return held.names, held.known, err
}

// IsProvider reports whether the session's user is one of the organization System, who has all rights.
func (s *Session) IsProvider() bool { return s.client.Provider }

const sessionPath = "/cloudapi/1.0.0/sessions/current"

// A whoami is what VCD shows of a session.
type whoami struct {
	Org   wire.Ref   `json:"org"`
	User  wire.Ref   `json:"user"`
	Roles []wire.Ref `json:"roleRefs"`
}

func (u *user) whoami(ctx context.Context) (whoami, error) {
	return cache.Lookup(ctx, u.lookups, "session", func(ctx context.Context) (whoami, error) {
		var current whoami
		err := u.client.GetJSON(ctx, sessionPath, "", &current)
		return current, err
	})
}

// recentRights are the rights of the user a while ago at most.
func (u *user) recentRights(ctx context.Context) (heldRights, error) {
	return cache.Lookup(ctx, u.lookups, "rights", u.rights)
}

// rights reads the rights of the session's user.
func (u *user) rights(ctx context.Context) (heldRights, error) {
	var current whoami
	if err := u.client.GetJSON(ctx, sessionPath, "", &current); err != nil {
		return heldRights{}, readable(err)
	}
	held := heldRights{known: true}
	for _, role := range current.Roles {
		of, err := api.ListAll[wire.Ref](ctx, u.client, api.Listing{
			Path: "/cloudapi/1.0.0/roles/" + url.PathEscape(role.ID) + "/rights",
			What: "rights",
			Of:   " of role " + role.Name,
			Sort: "name",
		})
		if err != nil {
			return heldRights{}, readable(err)
		}
		for _, right := range of {
			held.names = append(held.names, right.Name)
		}
	}
	return held, nil
}

// User returns the name of the session's user.
func (s *Session) User(ctx context.Context) (string, error) {
	current, err := s.user.whoami(ctx)
	return current.User.Name, err
}
