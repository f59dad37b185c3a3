// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
)

// maxPrefixes limits the number of prefixes in a pool.
const maxPrefixes = 1 << 16

type wireSpace struct {
	ref

	Type     string   `json:"type"`
	Internal []string `json:"ipSpaceInternalScope"`
	External string   `json:"ipSpaceExternalScope"`
	Ranges   struct {
		Quota  int         `json:"defaultFloatingIpQuota"`
		Values []wireRange `json:"ipRanges"`
	} `json:"ipSpaceRanges"`
	Prefixes []struct {
		Quota     int `json:"defaultQuotaForPrefixLength"`
		Sequences []struct {
			Start  string `json:"startingPrefixIpAddress"`
			Length int    `json:"prefixLength"`
			Count  int    `json:"totalPrefixCount"`
		} `json:"ipPrefixSequence"`
	} `json:"ipSpacePrefixes"`
}

type wireQuotas struct {
	Space  ref `json:"ipSpaceRef"`
	Custom *struct {
		FloatingIPs *int `json:"floatingIpQuota"`
	} `json:"customQuotas"`
}

// readSpaces reads the IP Spaces that provide addresses to the gateways.
func (r *reader) readSpaces(ctx context.Context, names *aliases, gateways []wireGateway) ([]IPSpace, error) {
	networks, err := r.networksOfSpaces(ctx, gateways)
	if err != nil || len(networks) == 0 {
		return nil, err
	}
	listed, err := readList[ref](ctx, r, "IP Spaces", "/cloudapi/1.0.0/ipSpaces/summaries", url.Values{"sortAsc": {"name"}})
	if err != nil {
		return nil, r.noteIfHidden("IP Spaces", err)
	}
	quotas, err := readList[wireQuotas](ctx, r, "quotas of IP Spaces", "/cloudapi/1.0.0/ipSpaces/orgAssignments", nil)
	if err := r.noteIfHidden("quotas of IP Spaces", err); err != nil {
		return nil, err
	}
	var spaces []IPSpace
	for _, x := range inOrder(listed, func(x ref) string { return x.Name }) {
		if networks[x.ID] == nil {
			continue
		}
		space, usable, err := r.readSpace(ctx, x.ID)
		if err != nil {
			return nil, err
		}
		if !usable {
			continue
		}
		for _, q := range quotas {
			if q.Space.ID == x.ID && q.Custom != nil && q.Custom.FloatingIPs != nil {
				space.RangeQuota = *q.Custom.FloatingIPs
			}
		}
		space.Name = names.assign("space", x.ID)
		for _, network := range networks[x.ID] {
			space.Uplinks = append(space.Uplinks, SpaceUplink{
				Name:    names.assign("uplink", x.ID+network),
				Network: names.of(network),
			})
		}
		spaces = append(spaces, space)
	}
	return spaces, nil
}

// networksOfSpaces returns the IDs of the external networks for each IP Space. These are the networks of the gateways
// for which VCD suggests addresses of the IP Space.
func (r *reader) networksOfSpaces(ctx context.Context, gateways []wireGateway) (map[string][]string, error) {
	networks := map[string][]string{}
	for _, gateway := range gateways {
		for _, uplink := range gateway.Uplinks {
			if !uplink.UsesSpaces {
				continue
			}
			suggestions, err := readList[struct {
				Space ref `json:"ipSpaceRef"`
			}](ctx, r, "IP Spaces", "/cloudapi/1.0.0/ipSpaces/floatingIpSuggestions",
				url.Values{"filter": {"gatewayId==" + gateway.ID}})
			if err := r.noteIfHidden("IP Spaces", err); err != nil {
				return nil, err
			}
			for _, s := range suggestions {
				if !slices.Contains(networks[s.Space.ID], uplink.ID) {
					networks[s.Space.ID] = append(networks[s.Space.ID], uplink.ID)
				}
			}
		}
	}
	return networks, nil
}

// readSpace reads an IP Space, and reports whether the simulator supports it.
func (r *reader) readSpace(ctx context.Context, id string) (_ IPSpace, usable bool, _ error) {
	var shown wireSpace
	if err := r.readJSON(ctx, "/cloudapi/1.0.0/ipSpaces/"+url.PathEscape(id), nil, &shown); err != nil {
		return IPSpace{}, false, r.noteIfHidden("IP Spaces", err)
	}
	space := IPSpace{
		Type:       oneOf(shown.Type, "PUBLIC", "SHARED_SERVICES"),
		Ranges:     rangesOf(shown.Ranges.Values),
		RangeQuota: shown.Ranges.Quota,
	}
	if space.Type == "" {
		r.note("IP Spaces: private IP Spaces are omitted")
		return space, false, nil
	}
	for _, x := range shown.Prefixes {
		for _, s := range x.Sequences {
			first := netip.PrefixFrom(addressOf(s.Start), s.Length)
			pool := PrefixPool{First: first, Count: s.Count, Quota: x.Quota}
			if first.IsValid() && s.Count > 0 && s.Count <= maxPrefixes && movable(covering(pool.all())) {
				space.Prefixes = append(space.Prefixes, pool)
			}
		}
	}
	space.Internal = internalScopes(shown.Internal, space)
	if p, err := netip.ParsePrefix(shown.External); err == nil && (p.Bits() == 0 || movable(p)) {
		space.External = p
	}
	return space, true, nil
}

// internalScopes returns the internal scopes of an IP Space. A scope that is too wide to move would also preserve most
// of each address in it. It is replaced with the prefixes of the ranges and pools of the IP Space.
func internalScopes(shown []string, space IPSpace) []netip.Prefix {
	var scopes []netip.Prefix
	for _, text := range shown {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
		case movable(p):
			scopes = append(scopes, p.Masked())
		default:
			for _, inside := range outermost(space.covered()) {
				if p.Overlaps(inside) {
					scopes = append(scopes, inside)
				}
			}
		}
	}
	return scopes
}

// covered returns the prefixes of the ranges and pools of the IP Space.
func (s IPSpace) covered() []netip.Prefix {
	var all []netip.Prefix
	for _, x := range s.Ranges {
		all = append(all, covering(x))
	}
	for _, x := range s.Prefixes {
		all = append(all, covering(x.all()))
	}
	return all
}
