// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// An Export is the result of reading a site.
type Export struct {
	Model Model
	// Versions are the versions of the site.
	Versions vcd.Versions
	// Notes are sentences about data that could not be read or are omitted. They do not identify the site.
	Notes []string
}

// Read reads the organization of a session.
func Read(ctx context.Context, session *vcd.Session) (Export, error) {
	if session.IsProvider() {
		return Export{}, errors.New("the user belongs to the provider and can see all organizations: log in as a user of the organization to export")
	}
	versions, err := session.Versions(ctx)
	if err != nil {
		return Export{}, err
	}
	r := &reader{session: session}
	model, err := r.readSite(ctx)
	if err != nil {
		return Export{}, err
	}
	moveAddresses(&model)
	return Export{Model: model, Versions: versions, Notes: r.notes}, nil
}

// readSite reads the site, still with its real addresses.
func (r *reader) readSite(ctx context.Context) (Model, error) {
	names := newAliases()
	org, err := r.readOrg(ctx)
	if err != nil {
		return Model{}, err
	}
	model := Model{}
	if org.VDCs, model.Policies, err = r.readVDCs(ctx, names); err != nil {
		return Model{}, err
	}
	if org.VDCGroups, err = r.readGroups(ctx, names); err != nil {
		return Model{}, err
	}
	homeOf := homes(names, org.VDCs, org.VDCGroups)
	gateways, err := r.readGateways(ctx)
	if err != nil {
		return Model{}, err
	}
	model.ExternalNetworks = externalNetworks(names, gateways)
	if model.IPSpaces, err = r.readSpaces(ctx, names, gateways); err != nil {
		return Model{}, err
	}
	if model.ServiceEngineGroups, err = r.addGateways(ctx, names, gateways, org.VDCs, homeOf); err != nil {
		return Model{}, err
	}
	if err := r.addNetworks(ctx, names, org.VDCs, homeOf); err != nil {
		return Model{}, err
	}
	if org.Catalogs, err = r.readCatalogs(ctx, names); err != nil {
		return Model{}, err
	}
	model.Orgs = []Org{provider(), org}
	if len(model.Policies) == 0 {
		model.Policies = []Policy{{Name: systemDefault}}
	}
	return model, nil
}

// Names and credentials in each file. None of them comes from the site.
const (
	orgName  = alias("org-1")
	roleName = alias("Exported User")
	password = "password"
	apiToken = "capvcd-api-token" //nolint:gosec // Each file has it, for the simulator only.

	administrator = alias("Organization Administrator")
)

func provider() Org {
	return Org{
		Name:  "System",
		Users: []User{{Name: "administrator", Password: password, Role: "System Administrator"}},
	}
}

// readOrg reads the leases of the organization and the rights of the user. The user capvcd in the file gets these
// rights.
func (r *reader) readOrg(ctx context.Context) (Org, error) {
	user := User{
		Name:      "capvcd",
		Password:  password,
		Role:      administrator,
		APITokens: []string{apiToken},
	}
	org := Org{
		Name:  orgName,
		Users: []User{{Name: "admin", Password: password, Role: administrator}},
	}
	held, known, err := r.session.Rights(ctx)
	if err != nil {
		return Org{}, err
	}
	if known {
		allowed := knownRights()
		role := Role{Name: roleName}
		for _, right := range slices.Sorted(slices.Values(held)) {
			if slices.Contains(allowed, right) {
				role.Rights = append(role.Rights, right)
			}
		}
		user.Role = roleName
		org.Roles = []Role{role}
		org.Bundles = []Role{role}
	} else {
		r.note("rights of the user: not readable for the user; capvcd is an administrator in the file")
	}
	org.Users = append(org.Users, user)
	leases, known, err := r.session.Leases(ctx)
	switch {
	case err != nil:
		return Org{}, err
	case !known:
		r.note("leases: not readable for the user; the defaults of the simulator apply")
	default:
		org.RuntimeLease = lease(leases.Runtime)
		org.StorageLease = lease(leases.Storage)
	}
	return org, nil
}

// lease formats a lease for the file. It is empty if the lease never expires.
func lease(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return d.String()
}
