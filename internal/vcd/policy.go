// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Policy is a VM sizing or placement policy.
type Policy struct {
	Ref

	CPUs      int64 // 0 if the policy does not set it
	MemoryMiB int64 // 0 if the policy does not set it
}

// A computePolicy is a sizing or placement policy of a VDC.
type computePolicy struct {
	Policy

	sizing bool
}

// FindSizingPolicy finds a VM sizing policy of the VDC by name or URN.
func (v *VDCs) FindSizingPolicy(ctx context.Context, vdc VDC, nameOrURN string) (Policy, error) {
	return v.findPolicy(ctx, vdc, nameOrURN, true)
}

// FindPlacementPolicy finds a VM placement policy of the VDC by name or URN.
func (v *VDCs) FindPlacementPolicy(ctx context.Context, vdc VDC, nameOrURN string) (Policy, error) {
	return v.findPolicy(ctx, vdc, nameOrURN, false)
}

// ListPlacementPolicies returns the VM placement policies of the VDC, sorted by name.
func (v *VDCs) ListPlacementPolicies(ctx context.Context, vdc VDC) ([]Policy, error) {
	all, err := v.policies(ctx, vdc)
	if err != nil {
		return nil, err
	}
	var found []Policy
	for _, p := range all {
		if !p.sizing {
			found = append(found, p.Policy)
		}
	}
	slices.SortFunc(found, func(a, b Policy) int { return compareRefs(a.Ref, b.Ref) })
	return found, nil
}

// FindDefaultSizing returns the sizing policy of VMs that request none. It is empty if that policy sets nothing or is
// not visible to the user.
func (v *VDCs) FindDefaultSizing(ctx context.Context, vdc VDC) (Policy, error) {
	return cache.Lookup(ctx, v.lookups, cache.Key("default sizing", vdc.ID), func(ctx context.Context) (Policy, error) {
		var doc struct {
			Default wire.XMLRef `xml:"DefaultComputePolicy"`
		}
		if err := v.client.GetXML(ctx, urn.Path(urn.VDC, vdc.ID), &doc); err != nil {
			return Policy{}, fmt.Errorf("reading VDC %s: %w", vdc.Name, err)
		}
		id := policyID(&types.Reference{ID: doc.Default.ID, HREF: doc.Default.HRef})
		if id == "" {
			return Policy{}, nil
		}
		found, err := v.FindSizingPolicy(ctx, vdc, id)
		if _, ok := errors.AsType[*LookupError](err); ok {
			return Policy{}, nil // a placement policy, or not visible to the user
		}
		return found, err
	})
}

// HardwareVersions returns the versions of virtual hardware that a VDC supports, such as vmx-19.
func (v *VDCs) HardwareVersions(ctx context.Context, vdc VDC) ([]string, error) {
	return cache.Lookup(ctx, v.lookups, cache.Key("hardware", vdc.ID), func(ctx context.Context) ([]string, error) {
		var doc struct {
			Versions []string `xml:"Capabilities>SupportedHardwareVersions>SupportedHardwareVersion"`
		}
		if err := v.client.GetXML(ctx, urn.Path(urn.VDC, vdc.ID), &doc); err != nil {
			return nil, fmt.Errorf("reading VDC %s: %w", vdc.Name, err)
		}
		return doc.Versions, nil
	})
}

func (v *VDCs) findPolicy(ctx context.Context, vdc VDC, nameOrURN string, sizing bool) (Policy, error) {
	kind := "placement policy"
	other := "sizing policy"
	in := "VDC " + vdc.Name
	if sizing {
		kind, other = other, kind
	}
	cacheKey := cache.Key("policies", vdc.ID)
	_, cached := v.lookups.Get(ctx, cacheKey)
	for {
		all, err := cache.Lookup(ctx, v.lookups, cacheKey, func(ctx context.Context) ([]computePolicy, error) {
			return v.policies(ctx, vdc)
		})
		if err != nil {
			return Policy{}, err
		}
		found, err := choosePolicy(all, kind, other, nameOrURN, in, sizing)
		if err == nil || !cached {
			return found, err
		}
		// The list is cached as a whole. The policy may have been published since.
		v.lookups.Drop(cacheKey)
		cached = false
	}
}

func choosePolicy(all []computePolicy, kind, other, nameOrURN, in string, sizing bool) (Policy, error) {
	var hits []Ref
	byID := map[string]Policy{}
	elsewhere := false
	for _, policy := range all {
		matches := policy.Name == nameOrURN || policy.ID == nameOrURN
		if policy.sizing != sizing {
			elsewhere = elsewhere || matches
			continue
		}
		hits = append(hits, policy.Ref)
		byID[policy.ID] = policy.Policy
	}
	ref, err := only(kind, nameOrURN, in, hits)
	if errors.Is(err, ErrNotFound) && elsewhere {
		return Policy{}, &LookupError{Kind: kind, Name: nameOrURN, In: in, Reason: "is a " + other, Err: ErrInvalid}
	}
	return byID[ref.ID], err
}

type wirePolicy struct{ types.VdcComputePolicyV2 }

func (w wirePolicy) Key() string { return w.ID }

func policyFrom(w *wirePolicy) computePolicy {
	ref := Ref{ID: w.ID, Name: w.Name}
	return computePolicy{Policy{ref, wire.Number(w.CPUCount), wire.Number(w.Memory)}, w.IsSizingOnly}
}

// policies lists the policies of a VDC, of both kinds. One request serves all lookups of either kind.
func (v *VDCs) policies(ctx context.Context, vdc VDC) ([]computePolicy, error) {
	return api.ListAs(ctx, v.client, api.Listing{
		Path: "/cloudapi/2.0.0/vdcs/" + url.PathEscape(vdc.ID) + "/computePolicies",
		What: "VM policies",
		Of:   " of VDC " + vdc.Name,
		Sort: "name",
	}, policyFrom)
}

func policyID(r *types.Reference) string {
	switch {
	case r == nil:
		return ""
	case r.ID != "":
		return urn.Of(urn.ComputePolicy, r.ID)
	}
	return urn.Of(urn.ComputePolicy, r.HREF)
}
