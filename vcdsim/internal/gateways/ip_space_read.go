// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

type spaceBody struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Type        string      `json:"type"`
	OrgRef      JSONRefBody `json:"orgRef"`
	Ranges      struct {
		Ranges []struct {
			From string `json:"startIpAddress"`
			To   string `json:"endIpAddress"`
		} `json:"ipRanges"`
		Quota *int `json:"defaultFloatingIpQuota"`
	} `json:"ipSpaceRanges"`
	Prefixes []struct {
		Sequences []struct {
			From  string `json:"startingPrefixIpAddress"`
			Bits  int    `json:"prefixLength"`
			Count int    `json:"totalPrefixCount"`
		} `json:"ipPrefixSequence"`
		Quota int `json:"defaultQuotaForPrefixLength"`
	} `json:"ipSpacePrefixes"`
	Internal []string `json:"ipSpaceInternalScope"`
	External string   `json:"ipSpaceExternalScope"`
}

// readSpace reads and checks an IP Space. The space replaces old, which is nil for a new space.
func readSpace(r *api.Request, old *store.IPSpace) (*store.IPSpace, error) {
	var body spaceBody
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	p := &store.IPSpace{Name: body.Name, Description: body.Description, Type: body.Type, RangeQuota: -1}
	p.Fields = Rest(r.Content, []string{"routeAdvertisementEnabled", "defaultGatewayServiceConfig"})
	if body.Ranges.Quota != nil {
		p.RangeQuota = *body.Ranges.Quota
	}
	if err := setSpaceOwner(r.Session, r.Cloud.Store, p, old, body.OrgRef.ID); err != nil {
		return nil, err
	}
	if p.Name == "" || !slices.Contains([]string{store.SpacePublic, store.SpaceShared, store.SpacePrivate}, p.Type) {
		return nil, store.BadRequest("An IP space needs a name and a valid type.")
	}
	if slices.ContainsFunc(r.Cloud.Store.Model.IPSpaces,
		func(x store.IPSpace) bool { return x.ID != p.ID && x.Name == p.Name && x.OrgID == p.OrgID }) {
		return nil, store.DuplicateName(p.Name)
	}
	return p, readSpaceContent(p, body)
}

func readSpaceContent(p *store.IPSpace, body spaceBody) error {
	if err := readSpaceScopes(p, body); err != nil {
		return err
	}
	if err := readSpaceRanges(p, body); err != nil {
		return err
	}
	return checkAllocationsKept(p)
}

// setSpaceOwner copies the fields that an update cannot change from old. For a new private space, it sets the
// organization.
func setSpaceOwner(session *store.Session, st *store.Store, p, old *store.IPSpace, orgID string) error {
	if old != nil {
		if p.Type != "" && p.Type != old.Type || orgID != "" && store.Bare(orgID) != old.OrgID {
			return store.BadRequest("The type and the organization of the IP space %q cannot be changed.", old.Name)
		}
		p.ID = old.ID
		p.Type = old.Type
		p.OrgID = old.OrgID
		p.Uplinks = old.Uplinks
		p.Allocations = old.Allocations
		return nil
	}
	if p.Type != store.SpacePrivate {
		return nil
	}
	org := st.Org(store.Bare(orgID))
	if org == nil || !session.Sees(org.ID) {
		return store.Forbidden("ORG_VIEW", orgID)
	}
	p.OrgID = org.ID
	return nil
}

func readSpaceScopes(p *store.IPSpace, body spaceBody) error {
	for _, text := range body.Internal {
		x, err := netip.ParsePrefix(text)
		if err != nil {
			return store.BadRequest("The internal scope %q is invalid.", text)
		}
		p.Internal = append(p.Internal, x)
	}
	if len(p.Internal) == 0 {
		return store.BadRequest("An IP space needs an internal scope.")
	}
	if body.External != "" {
		x, err := netip.ParsePrefix(body.External)
		if err != nil {
			return store.BadRequest("The external scope %q is invalid.", body.External)
		}
		p.External = x
	}
	return nil
}

// readSpaceRanges reads ranges and prefixes. All must lie within the internal scope and must not overlap.
func readSpaceRanges(p *store.IPSpace, body spaceBody) error {
	var taken []store.Range
	for _, v := range body.Ranges.Ranges {
		got, err := JSONRanges{[]JSONRange{{v.From, v.To}}}.Ranges(netip.Prefix{})
		if err != nil {
			return err
		}
		p.Ranges = append(p.Ranges, got[0])
		taken = append(taken, got[0])
	}
	for _, group := range body.Prefixes {
		for _, v := range group.Sequences {
			from, err := netip.ParseAddr(v.From)
			if err != nil || v.Bits < 1 || v.Bits > from.BitLen() || v.Count < 1 || v.Count > 1<<16 {
				return store.BadRequest("The IP prefix %s/%d is invalid.", v.From, v.Bits)
			}
			x := store.PrefixPool{First: netip.PrefixFrom(from, v.Bits), Count: v.Count, Quota: group.Quota}
			last := from
			forEachPrefix(x, func(q netip.Prefix) bool { last = lastAddress(q); return true })
			p.Prefixes = append(p.Prefixes, x)
			taken = append(taken, store.Range{From: x.First.Masked().Addr(), To: last})
		}
	}
	return checkSpaceRanges(p, taken)
}

// checkSpaceRanges refuses ranges that are outside the internal scope or overlap.
func checkSpaceRanges(p *store.IPSpace, taken []store.Range) error {
	for i, r := range taken {
		inside := slices.ContainsFunc(p.Internal,
			func(x netip.Prefix) bool { return x.Masked().Contains(r.From) && x.Masked().Contains(r.To) })
		if !inside || Overlap(taken[:i], []store.Range{r}) {
			return store.BadRequest("The IP range %s-%s is outside of the internal scope of the IP space or overlaps with another.", r.From, r.To)
		}
	}
	return nil
}

// checkAllocationsKept refuses a change that removes allocated values.
func checkAllocationsKept(p *store.IPSpace) error {
	for _, a := range p.Allocations {
		held := a.Type == store.FloatingIP && InRanges(p.Ranges, ParseAddresses(a.Value)[0]) ||
			a.Type == store.IPPrefix && slices.ContainsFunc(p.Prefixes, func(x store.PrefixPool) bool { return containsPrefix(x, a.Value) })
		if !held {
			return store.BadRequest("%s is allocated and cannot be removed from the IP space %q.", a.Value, p.Name)
		}
	}
	return nil
}
