// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// maxModelFile is the maximum size of a file with a model, in bytes.
const maxModelFile = 16 << 20

// ReadModel reads a model in YAML or JSON, as written by WriteModel. Unknown fields and references to objects that
// the model does not contain are errors. The error lists all of these references.
func ReadModel(r io.Reader) (Model, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxModelFile+1))
	if err != nil {
		return Model{}, fmt.Errorf("reading a model: %w", err)
	}
	if len(text) > maxModelFile {
		return Model{}, fmt.Errorf("reading a model: it has more than %d MiB", maxModelFile>>20)
	}
	m := Model{}
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		return Model{}, fmt.Errorf("reading a model: %w", err)
	}
	if err := checkModel(&m); err != nil {
		return Model{}, err
	}
	return m, nil
}

// WriteModel writes a model as YAML, including passwords and API tokens.
func WriteModel(w io.Writer, m Model) error {
	text, err := yaml.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a model: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing a model: %w", err)
	}
	return nil
}

// checkModel returns an error if a model is unusable.
func checkModel(m *Model) error {
	if len(m.Orgs) < 2 || m.Orgs[0].Name != store.SystemOrg {
		return fmt.Errorf("orgs: the first organization must be %q with the users of the provider, followed by the tenants", store.SystemOrg)
	}
	policies := names(m.Policies, func(p *ComputePolicy) []string { return []string{p.Name, p.ID} })
	external := names(m.ExternalNetworks, func(n *ExternalNetwork) []string { return []string{n.Name, n.ID} })
	errs := []error{checkUnique("orgs", m.Orgs, func(o *Org) string { return o.Name })}
	for i := range m.IPSpaces {
		space := &m.IPSpaces[i]
		for _, uplink := range space.Uplinks {
			errs = append(errs, checkReference("ipSpaces: "+space.Name+": uplinks: "+uplink.Name+": network", uplink.Network, external))
		}
	}
	for i := range m.Orgs {
		errs = append(errs, checkOrg(&m.Orgs[i], policies, external))
	}
	return errors.Join(errs...)
}

// checkOrg checks an organization. policies and external are the names and IDs of the provider's policies and
// external networks.
func checkOrg(org *Org, policies, external []string) error {
	at := "orgs: " + org.Name + ": "
	errs := []error{
		checkUnique(at+"users", org.Users, func(u *User) string { return u.Name }),
		checkUnique(at+"vdcs", org.VDCs, func(v *VDC) string { return v.Name }),
		checkUnique(at+"catalogs", org.Catalogs, func(c *Catalog) string { return c.Name }),
	}
	roles := names(org.Roles, func(r *Role) []string { return []string{r.Name} })
	if org.Name == store.SystemOrg {
		roles = append(roles, "System Administrator")
	}
	for i := range org.Users {
		user := &org.Users[i]
		if !access.IsBuiltInRole(user.Role) {
			errs = append(errs, checkReference(at+"users: "+user.Name+": role", user.Role, roles))
		}
	}
	vdcs := names(org.VDCs, func(v *VDC) []string { return []string{v.Name, v.ID} })
	for i := range org.VDCGroups {
		group := &org.VDCGroups[i]
		for _, member := range group.VDCs {
			errs = append(errs, checkReference(at+"vdcGroups: "+group.Name+": vdcs", member, vdcs))
		}
	}
	for i := range org.VDCs {
		errs = append(errs, checkVDC(at, &org.VDCs[i], policies, external))
	}
	return errors.Join(errs...)
}

// checkVDC checks a VDC of an organization. at is its path in the model, for errors.
func checkVDC(at string, vdc *VDC, policies, external []string) error {
	at += "vdcs: " + vdc.Name + ": "
	errs := []error{
		checkUnique(at+"networks", vdc.Networks, func(n *Network) string { return n.Name }),
		checkUnique(at+"storageProfiles", vdc.StorageProfiles, func(p *StorageProfile) string { return p.Name }),
	}
	for _, policy := range vdc.Policies {
		errs = append(errs, checkReference(at+"policies", policy, policies))
	}
	for i := range vdc.EdgeGateways {
		gateway := &vdc.EdgeGateways[i]
		for _, uplink := range gateway.Uplinks {
			errs = append(errs, checkReference(at+"edgeGateways: "+gateway.Name+": uplinks: network", uplink.Network, external))
		}
	}
	for i := range vdc.Networks {
		network := &vdc.Networks[i]
		if !network.Gateway.IsValid() {
			errs = append(errs, fmt.Errorf("%snetworks: %s: gateway: it must be an address with the length of the subnet, such as 192.168.100.1/24", at, network.Name))
		}
	}
	return errors.Join(errs...)
}

// names returns all names of items.
func names[T any](items []T, namesOf func(*T) []string) []string {
	var all []string
	for i := range items {
		all = append(all, namesOf(&items[i])...)
	}
	return all
}

// checkReference returns an error if name is empty or not in among.
func checkReference(at, name string, among []string) error {
	if name != "" && slices.Contains(among, name) {
		return nil
	}
	return fmt.Errorf("%s: the model has no %q", at, name)
}

// checkUnique returns an error if an item has no name or two items have the same name.
func checkUnique[T any](at string, items []T, nameOf func(*T) string) error {
	seen := map[string]bool{}
	for i := range items {
		name := nameOf(&items[i])
		switch {
		case name == "":
			return fmt.Errorf("%s: number %d has no name", at, i+1)
		case seen[name]:
			return fmt.Errorf("%s: %q is duplicated", at, name)
		}
		seen[name] = true
	}
	return nil
}
