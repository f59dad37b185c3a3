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
	// rightSeesAll makes all vApps, VMs and VDCs of the organization visible, of any owner.
	rightSeesAll = "General: Administrator View"
	// rightSeesVDCs makes VDCs visible.
	rightSeesVDCs = "Organization vDC: View"
	// rightSeesUnsharedVDCs also makes VDCs visible that are shared only with other users.
	rightSeesUnsharedVDCs = "Access All Organization VDCs"
	// rightSeesGateways makes edge gateways visible.
	rightSeesGateways = "Organization vDC Gateway: View"
)

// RightConsolidate is the right to consolidate VMs, with its name in VCD's API.
const RightConsolidate = "vApp: VM Migrate, Force Undeploy, Relocate, Consolidate"

// A user reads data about the user of a session.
type user struct {
	client  *api.Client
	lookups *cache.Cache
}

// heldRights are the rights of a session's user. They are unknown if the user may not read them.
type heldRights struct {
	names []string
	known bool
}

// MayHave reports whether the session's user may have a right: a role of the user has it, or the user may not read its
// rights. The rights are cached for all callers.
func (s *Session) MayHave(ctx context.Context, right string) (bool, error) {
	if s.client.Provider {
		return true, nil
	}
	held, err := s.user.recentRights(ctx)
	return err == nil && (!held.known || slices.Contains(held.names, right)), err
}

// holds reports whether the roles of the session's user currently have all given rights. It returns false if the user
// may not read its rights.
func (u *user) holds(ctx context.Context, rights ...string) (bool, error) {
	if u.client.Provider {
		return true, nil
	}
	held, err := u.rights(ctx)
	missing := func(right string) bool { return !slices.Contains(held.names, right) }
	return err == nil && held.known && !slices.ContainsFunc(rights, missing), err
}

// Rights returns the rights of the session's user. known is false if the user may not read them. A user of the provider
// has all rights.
func (s *Session) Rights(ctx context.Context) (names []string, known bool, err error) {
	held, err := s.user.recentRights(ctx)
	return held.names, held.known, err
}

// IsProvider reports whether the session's user belongs to the System organization and thus has all rights.
func (s *Session) IsProvider() bool { return s.client.Provider }

const sessionPath = "/cloudapi/1.0.0/sessions/current"

// A whoami is the current session as VCD reports it.
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

// recentRights returns the rights of the user, which may be cached.
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
