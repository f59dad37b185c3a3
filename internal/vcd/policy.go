package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// maxPolicyPages bounds how many pages of policies are read: a server that always offers another one stops us here.
const maxPolicyPages = 50

// A computePolicy is a VM policy of a VDC of either kind.
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

// FindDefaultSizing returns the sizing policy that the VDC gives to VMs for which none is asked. It is empty if that
// fixes nothing, or may not be seen.
func (v *VDCs) FindDefaultSizing(ctx context.Context, vdc VDC) (Policy, error) {
	return lookup(ctx, v.lookups, key("default sizing", vdc.ID), func(ctx context.Context) (Policy, error) {
		var doc struct {
			Default xmlRef `xml:"DefaultComputePolicy"`
		}
		if err := v.getXML(ctx, pathOf(kindVDC, vdc.ID), &doc); err != nil {
			return Policy{}, fmt.Errorf("reading VDC %s: %w", vdc.Name, err)
		}
		id := policyID(&types.Reference{ID: doc.Default.ID, HREF: doc.Default.HRef})
		if id == "" {
			return Policy{}, nil
		}
		found, err := v.FindSizingPolicy(ctx, vdc, id)
		if _, ok := errors.AsType[*LookupError](err); ok {
			return Policy{}, nil // It is a placement policy, or hidden from the user.
		}
		return found, err
	})
}

func (v *VDCs) findPolicy(ctx context.Context, vdc VDC, nameOrURN string, sizing bool) (Policy, error) {
	kind, other, in := "placement policy", "sizing policy", "VDC "+vdc.Name
	if sizing {
		kind, other = other, kind
	}
	cacheKey := key("policies", vdc.ID)
	_, cached := v.lookups.get(cacheKey)
	for {
		all, err := lookup(ctx, v.lookups, cacheKey, func(ctx context.Context) ([]computePolicy, error) {
			return v.policies(ctx, vdc)
		})
		if err != nil {
			return Policy{}, fmt.Errorf("listing VM policies of VDC %s: %w", vdc.Name, err)
		}
		found, err := choosePolicy(all, kind, other, nameOrURN, in, sizing)
		if err == nil || !cached {
			return found, err
		}
		// The list is remembered as a whole: what it lacks may have been published since.
		v.lookups.drop(cacheKey)
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

// policies lists the policies of a VDC, of both kinds: one call serves all look-ups of either.
func (v *VDCs) policies(ctx context.Context, vdc VDC) ([]computePolicy, error) {
	path := "/cloudapi/2.0.0/vdcs/" + url.PathEscape(vdc.ID) + "/computePolicies"
	var all []computePolicy
	for page := 1; page <= maxPolicyPages; page++ {
		var found struct {
			Total  int                         `json:"resultTotal"`
			Values []*types.VdcComputePolicyV2 `json:"values"`
		}
		if err := v.getJSON(ctx, path, params("page", strconv.Itoa(page), "pageSize", strconv.Itoa(pageSize)),
			&found); err != nil {
			return nil, err
		}
		for _, p := range found.Values {
			all = append(all, computePolicy{
				Policy: Policy{Ref: Ref{ID: p.ID, Name: p.Name}, CPUs: number(p.CPUCount), MemoryMiB: number(p.Memory)},
				sizing: p.IsSizingOnly,
			})
		}
		if len(all) >= found.Total || len(found.Values) == 0 {
			return all, nil
		}
	}
	return all, nil
}

func number(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}
