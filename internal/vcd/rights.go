package vcd

import (
	"context"
	"errors"
	"net/url"
	"slices"
)

const (
	// rightSeesAll shows all vApps, VMs and VDCs of the organization, to whoever they belong.
	rightSeesAll = "General: Administrator View"
	// rightSeesVDCs shows VDCs.
	rightSeesVDCs = "Organization vDC: View"
)

// holds reports whether the roles of the session's user have some rights. False if the user may not read them.
func (c *client) holds(ctx context.Context, rights ...string) (bool, error) {
	if c.provider {
		return true, nil
	}
	var current struct {
		Roles []wireRef `json:"roleRefs"`
	}
	if err := c.getJSON(ctx, "/cloudapi/1.0.0/sessions/current", "", &current); err != nil {
		return false, readable(err)
	}
	var held []string
	for _, role := range current.Roles {
		of, err := listAll[wireRef](ctx, c, listing{
			path: "/cloudapi/1.0.0/roles/" + url.PathEscape(role.ID) + "/rights", what: "rights", of: " of role " + role.Name,
		})
		if err != nil {
			return false, readable(err)
		}
		for _, right := range of {
			held = append(held, right.Name)
		}
	}
	missing := func(right string) bool { return !slices.Contains(held, right) }
	return !slices.ContainsFunc(rights, missing), nil
}

// readable drops the errors of a user who may not read something.
func readable(err error) error {
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		return nil
	}
	return err
}
