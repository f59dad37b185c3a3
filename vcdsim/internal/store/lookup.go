// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"
)

// Org returns an organization, or nil if it does not exist.
func (s *Store) Org(id string) *Org {
	for i := range s.Model.Orgs {
		if s.Model.Orgs[i].ID == id {
			return &s.Model.Orgs[i]
		}
	}
	return nil
}

// OrgByName returns an organization by its name, ignoring case, or nil if it does not exist.
func (s *Store) OrgByName(name string) *Org {
	for i := range s.Model.Orgs {
		if strings.EqualFold(s.Model.Orgs[i].Name, name) {
			return &s.Model.Orgs[i]
		}
	}
	return nil
}

// VDCName returns the name of a VDC, or "" if an Editor deleted it.
func (s *Store) VDCName(id string) string {
	if _, v := s.VDC(id); v != nil {
		return v.Name
	}
	return ""
}

// VDC returns a VDC and its organization, or nils if it does not exist.
func (s *Store) VDC(id string) (*Org, *VDC) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			if org.VDCs[v].ID == id {
				return org, &org.VDCs[v]
			}
		}
	}
	return nil, nil
}

// Network returns an org VDC network with its organization and VDC, or nils if it does not exist.
func (s *Store) Network(id string) (*Org, *VDC, *Network) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			for n := range org.VDCs[v].Networks {
				if org.VDCs[v].Networks[n].ID == id {
					return org, &org.VDCs[v], &org.VDCs[v].Networks[n]
				}
			}
		}
	}
	return nil, nil, nil
}

// Profile returns a storage profile with its organization and VDC, or nils if it does not exist.
func (s *Store) Profile(id string) (*Org, *VDC, *StorageProfile) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			for p := range org.VDCs[v].StorageProfiles {
				if org.VDCs[v].StorageProfiles[p].ID == id {
					return org, &org.VDCs[v], &org.VDCs[v].StorageProfiles[p]
				}
			}
		}
	}
	return nil, nil, nil
}

// ProfileName returns the name of a storage profile, or "" if it does not exist.
func (s *Store) ProfileName(id string) string {
	if _, _, p := s.Profile(id); p != nil {
		return p.Name
	}
	return ""
}

// DefaultProfile returns the storage profile of requests that do not select one.
func (v *VDC) DefaultProfile() string {
	for _, p := range v.StorageProfiles {
		if p.Default {
			return p.ID
		}
	}
	if len(v.StorageProfiles) > 0 {
		return v.StorageProfiles[0].ID
	}
	return ""
}

// Policy returns a compute policy, or nil if it does not exist.
func (s *Store) Policy(id string) *ComputePolicy {
	for i := range s.Model.Policies {
		if s.Model.Policies[i].ID == id {
			return &s.Model.Policies[i]
		}
	}
	return nil
}

// PolicyByName returns a compute policy by its name, or nil if it does not exist.
func (s *Store) PolicyByName(name string) *ComputePolicy {
	for i := range s.Model.Policies {
		if s.Model.Policies[i].Name == name {
			return &s.Model.Policies[i]
		}
	}
	return nil
}

// DefaultSizing returns the sizing policy of a VDC's VMs that do not select one.
func (s *Store) DefaultSizing(v *VDC) string {
	if v.DefaultPolicy != "" {
		return v.DefaultPolicy
	}
	for _, name := range v.Policies {
		if p := s.PolicyByName(name); p != nil && !p.Placement {
			return p.ID
		}
	}
	return ""
}
