// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A VDC is an organization virtual data center with the properties that a plan needs.
type VDC struct {
	Ref

	StorageProfiles []StorageProfile
	// FastProvisioning is true if VMs are linked clones of their templates until they are consolidated.
	FastProvisioning bool
	// Disabled is true if no objects can be created or powered on in the VDC.
	Disabled bool
}

// A StorageProfile is a storage profile of a VDC.
type StorageProfile struct {
	Ref

	Default bool
	Enabled bool
}

// VDCs is the client for organization VDCs, their storage profiles and VM policies.
type VDCs struct {
	client  *api.Client
	lookups *cache.Cache
}

// FindVDC finds a VDC of the session's organization by name or URN. A result by name is also cached for the URN.
func (v *VDCs) FindVDC(ctx context.Context, nameOrURN string) (VDC, error) {
	return cache.Lookup(ctx, v.lookups, cache.Key("vdc", nameOrURN), func(ctx context.Context) (VDC, error) {
		vdc, err := v.findVDC(ctx, nameOrURN)
		if err == nil {
			v.lookups.Put(cache.Key("vdc", vdc.ID), vdc)
		}
		return vdc, err
	})
}

// ForgetVDC removes a VDC from the cache, so that the next FindVDC by its name or URN queries VCD. It is for callers
// that wait for a change of the VDC.
func (v *VDCs) ForgetVDC(vdc Ref) {
	v.lookups.Drop(cache.Key("vdc", vdc.ID))
	v.lookups.Drop(cache.Key("vdc", vdc.Name))
}

func (v *VDCs) findVDC(ctx context.Context, nameOrURN string) (VDC, error) {
	in := "organization " + v.client.Org
	if err := fiql.CheckName("VDC", nameOrURN, in); err != nil {
		return VDC{}, err
	}
	by := fiql.Is("name", nameOrURN)
	if urn.Is(nameOrURN) {
		by = fiql.Is("id", nameOrURN)
	}
	var found types.QueryResultRecordsType
	if err := v.client.QueryPage(ctx, "orgVdc", fiql.AllOf(fiql.Is("orgName", v.client.Org), by), 1, "", &found); err != nil {
		return VDC{}, fmt.Errorf("looking up VDC %s: %w", nameOrURN, err)
	}
	var hits []Ref
	fast := map[string]bool{}
	disabled := map[string]bool{}
	for _, record := range api.Both(found.OrgVdcRecord, found.OrgVdcAdminRecord) {
		id := urn.Of(urn.VDC, record.HREF)
		hits = append(hits, Ref{ID: id, Name: record.Name})
		fast[id] = record.IsFastProvisioned == "true"
		disabled[id] = record.IsEnabled == "false"
	}
	ref, err := only("VDC", nameOrURN, in, hits)
	if err != nil {
		return VDC{}, err
	}
	profiles, err := v.storageProfiles(ctx, ref)
	return VDC{
		Ref:              ref,
		StorageProfiles:  profiles,
		FastProvisioning: fast[ref.ID],
		Disabled:         disabled[ref.ID],
	}, err
}

// ListVDCs returns the VDCs of the session's organization without their storage profiles, sorted by name.
func (v *VDCs) ListVDCs(ctx context.Context) ([]VDC, error) {
	records, err := api.QueryAll(ctx, v.client, "orgVdc", "VDCs", fiql.AllOf(fiql.Is("orgName", v.client.Org)), "name",
		func(r *types.QueryResultOrgVdcRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultOrgVdcRecordType) {
			return found.OrgVdcRecord, found.OrgVdcAdminRecord
		})
	if err != nil {
		return nil, fmt.Errorf("listing VDCs of organization %s: %w", v.client.Org, err)
	}
	all := make([]VDC, 0, len(records))
	for _, r := range records {
		all = append(all, VDC{
			Ref:              Ref{ID: urn.Of(urn.VDC, r.HREF), Name: r.Name},
			FastProvisioning: r.IsFastProvisioned == "true",
			Disabled:         r.IsEnabled == "false",
		})
	}
	slices.SortFunc(all, func(a, b VDC) int { return compareRefs(a.Ref, b.Ref) })
	return all, nil
}

func (v *VDCs) storageProfiles(ctx context.Context, vdc Ref) ([]StorageProfile, error) {
	var found types.QueryResultRecordsType
	filter := fiql.AllOf(fiql.Is("vdc", vdc.ID))
	if err := v.client.QueryPage(ctx, "orgVdcStorageProfile", filter, 1, "name", &found); err != nil {
		return nil, fmt.Errorf("listing storage profiles of VDC %s: %w", vdc.Name, err)
	}
	var profiles []StorageProfile
	for _, r := range found.OrgVdcStorageProfileRecord {
		profiles = append(profiles, StorageProfile{
			Ref:     Ref{ID: urn.Of(urn.StorageProfile, r.HREF), Name: r.Name},
			Default: r.IsDefaultStorageProfile,
			Enabled: r.IsEnabled,
		})
	}
	for _, r := range found.AdminOrgVdcStorageProfileRecord {
		profiles = append(profiles, StorageProfile{
			Ref:     Ref{ID: urn.Of(urn.StorageProfile, r.HREF), Name: r.Name},
			Default: r.IsDefaultStorageProfile,
			Enabled: r.IsEnabled,
		})
	}
	return profiles, nil
}

// FindStorageProfile finds a storage profile of the VDC by name or URN. An empty name means the default profile. It
// sends no request, because the VDC contains its storage profiles.
func (v *VDCs) FindStorageProfile(_ context.Context, vdc VDC, nameOrURN string) (StorageProfile, error) {
	in := "VDC " + vdc.Name
	for _, profile := range vdc.StorageProfiles {
		switch {
		case nameOrURN == "" && !profile.Default, nameOrURN != "" && profile.Name != nameOrURN &&
			profile.ID != nameOrURN:
			continue
		case !profile.Enabled:
			return StorageProfile{}, &LookupError{
				Kind:   "storage profile",
				Name:   profile.Name,
				In:     in,
				Reason: "is disabled",
				Err:    ErrInvalid,
			}
		}
		return profile, nil
	}
	if nameOrURN == "" {
		return StorageProfile{}, &LookupError{
			Kind:   "storage profile",
			Name:   "",
			In:     in,
			Err:    ErrNotFound,
			Reason: "must be set because the VDC has no default",
		}
	}
	return StorageProfile{}, &LookupError{Kind: "storage profile", Name: nameOrURN, In: in, Err: ErrNotFound}
}

// List returns the VDCs of the organization that are visible to the user, sorted by name.
func (v *VDCs) List(ctx context.Context) ([]Ref, error) {
	records, err := api.QueryAll(ctx, v.client, "orgVdc", "VDCs", fiql.AllOf(fiql.Is("orgName", v.client.Org)), "name",
		func(r *types.QueryResultOrgVdcRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultOrgVdcRecordType) {
			return found.OrgVdcRecord, found.OrgVdcAdminRecord
		})
	refs := make([]Ref, 0, len(records))
	for _, r := range records {
		refs = append(refs, Ref{ID: urn.Of(urn.VDC, r.HREF), Name: r.Name})
	}
	return refs, failure.Wrap(err, "listing VDCs of organization", v.client.Org)
}
