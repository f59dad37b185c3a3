// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/netip"
	"slices"
)

type spaceBody struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Type        string      `json:"type"`
	OrgRef      jsonRefBody `json:"orgRef"`
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

// readSpace reads and checks an IP Space; old is what it replaces.
func readSpace(r *request, old *IPSpace) (*IPSpace, error) {
	var body spaceBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	p := &IPSpace{Name: body.Name, Description: body.Description, Type: body.Type, RangeQuota: -1}
	p.Fields = rest(r.body, []string{"routeAdvertisementEnabled", "defaultGatewayServiceConfig"})
	if body.Ranges.Quota != nil {
		p.RangeQuota = *body.Ranges.Quota
	}
	if err := spaceOwner(r, p, old, body.OrgRef.ID); err != nil {
		return nil, err
	}
	if p.Name == "" || !slices.Contains([]string{SpacePublic, SpaceShared, SpacePrivate}, p.Type) {
		return nil, badRequest("An IP space needs a name and a valid type.")
	}
	if slices.ContainsFunc(r.sim.store.Model.IPSpaces,
		func(x IPSpace) bool { return x.ID != p.ID && x.Name == p.Name && x.OrgID == p.OrgID }) {
		return nil, duplicateName(p.Name)
	}
	return p, p.readContent(body)
}

func (p *IPSpace) readContent(body spaceBody) error {
	if err := p.readScopes(body); err != nil {
		return err
	}
	if err := p.readRanges(body); err != nil {
		return err
	}
	return p.keepsAllocated()
}

// spaceOwner takes over whose a space is from the old one, or finds the organization of a new private one.
func spaceOwner(r *request, p, old *IPSpace, orgID string) error {
	if old != nil {
		p.ID = old.ID
		p.Type = old.Type
		p.OrgID = old.OrgID
		p.Uplinks = old.Uplinks
		p.Allocations = old.Allocations
		return nil
	}
	if p.Type != SpacePrivate {
		return nil
	}
	org := r.sim.store.org(bare(orgID))
	if org == nil || !r.sees(org.ID) {
		return forbidden("ORG_VIEW", orgID)
	}
	p.OrgID = org.ID
	return nil
}

func (p *IPSpace) readScopes(body spaceBody) error {
	for _, text := range body.Internal {
		x, err := netip.ParsePrefix(text)
		if err != nil {
			return badRequest("The internal scope %q is invalid.", text)
		}
		p.Internal = append(p.Internal, x)
	}
	if len(p.Internal) == 0 {
		return badRequest("An IP space needs an internal scope.")
	}
	if body.External != "" {
		x, err := netip.ParsePrefix(body.External)
		if err != nil {
			return badRequest("The external scope %q is invalid.", body.External)
		}
		p.External = x
	}
	return nil
}

// readRanges reads ranges and prefixes: all lie in the internal scope, and none overlaps another.
func (p *IPSpace) readRanges(body spaceBody) error {
	var taken []Range
	for _, v := range body.Ranges.Ranges {
		got, err := jsonRanges{[]jsonRange{{v.From, v.To}}}.ranges(netip.Prefix{})
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
				return badRequest("The IP prefix %s/%d is invalid.", v.From, v.Bits)
			}
			x := PrefixPool{First: netip.PrefixFrom(from, v.Bits), Count: v.Count, Quota: group.Quota}
			last := from
			x.each(func(q netip.Prefix) bool { last = lastOf(q); return true })
			p.Prefixes = append(p.Prefixes, x)
			taken = append(taken, Range{x.First.Masked().Addr(), last})
		}
	}
	return p.fits(taken)
}

// fits refuses ranges that are outside of the internal scope or overlap.
func (p *IPSpace) fits(taken []Range) error {
	for i, r := range taken {
		inside := slices.ContainsFunc(p.Internal,
			func(x netip.Prefix) bool { return x.Masked().Contains(r.From) && x.Masked().Contains(r.To) })
		if !inside || overlap(taken[:i], []Range{r}) {
			return badRequest("The IP range %s-%s is outside of the internal scope of the IP space or overlaps "+
				"with another.", r.From, r.To)
		}
	}
	return nil
}

// keepsAllocated refuses to take away what is allocated.
func (p *IPSpace) keepsAllocated() error {
	for _, a := range p.Allocations {
		held := a.Type == FloatingIP && inRanges(p.Ranges, parseAddresses(a.Value)[0]) ||
			a.Type == IPPrefix && slices.ContainsFunc(p.Prefixes, func(x PrefixPool) bool { return x.holds(a.Value) })
		if !held {
			return badRequest("%s is allocated and cannot be removed from the IP space %q.", a.Value, p.Name)
		}
	}
	return nil
}
