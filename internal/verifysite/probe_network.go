// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// errControl means that the control request of a probe was also rejected.
var errControl = errors.New("the control request was also rejected")

// accepts sends a request that creates an object of a kind, removes the object, and reports whether VCD accepted the
// request.
func (b *bench) accepts(ctx context.Context, k kind, call vcd.RawCall) (bool, error) {
	if err := b.created.add(k); err != nil {
		return false, err
	}
	err := b.calls.do(ctx, call)
	if err != nil && !refused(err) {
		return false, err
	}
	// A failed task may have created the object nevertheless.
	return err == nil, b.sweep(ctx, k)
}

// refusedAlone reports whether VCD rejects a request but accepts a control request. Without the control request, a
// rejection may have any cause.
func (b *bench) refusedAlone(ctx context.Context, k kind, requested, control vcd.RawCall) (bool, error) {
	accepted, err := b.accepts(ctx, k, requested)
	if err != nil || accepted {
		return false, err
	}
	accepted, err = b.accepts(ctx, k, control)
	if err == nil && !accepted {
		err = errControl
	}
	return err == nil, err
}

// document returns the body of a request with a name and the marker of the run.
func (b *bench) document(what string, fields map[string]any) map[string]any {
	body := map[string]any{"name": b.nextName(what), "description": markOf(b.run)}
	for name, value := range fields {
		body[name] = value
	}
	return body
}

func ref(id string) map[string]any { return map[string]any{"id": id} }

// profile returns the request for an application port profile. fields override or extend the required fields.
func (b *bench) profile(fields map[string]any) vcd.RawCall {
	body := b.document("profile", map[string]any{
		"scope":            "TENANT",
		"orgRef":           ref(b.gateway.Org.ID),
		"contextEntityId":  b.gateway.Owner.ID,
		"applicationPorts": []any{map[string]any{"protocol": "TCP", "destinationPorts": []string{"40001"}}},
	})
	for name, value := range fields {
		body[name] = value
	}
	return jsonPost(profilePath, body)
}

// tenantProfilesNeedOrg creates an application port profile without the organization.
func tenantProfilesNeedOrg(ctx context.Context, b *bench) (outcome, error) {
	requested := b.profile(map[string]any{"orgRef": nil})
	alone, err := b.refusedAlone(ctx, kindProfile, requested, b.profile(nil))
	return is(alone, howRefusedAlone, howAccepted), err
}

// maxNetworkName determines the maximum length of the name of an application port profile.
func maxNetworkName(ctx context.Context, b *bench) (outcome, error) {
	const assumed = 128
	return b.longest(ctx, assumed, func(n int) vcd.RawCall {
		name := b.nextName("")
		return b.profile(map[string]any{"name": name + strings.Repeat("n", n-len(name))})
	})
}

// maxNetworkDescription determines the maximum length of the description of an application port profile.
func maxNetworkDescription(ctx context.Context, b *bench) (outcome, error) {
	const assumed = 1024
	return b.longest(ctx, assumed, func(n int) vcd.RawCall {
		mark := markOf(b.run)
		return b.profile(map[string]any{"description": mark + strings.Repeat(".", n-len(mark))})
	})
}

const (
	// shortest is a length that exceeds every name and marker of a run.
	shortest = 100
	// endless is a length that exceeds the limit of every limited field.
	endless = 8192
)

// longest determines the length of the longest text that VCD accepts, or 0 if there is no limit. It starts with the
// length that the simulator assumes.
func (b *bench) longest(ctx context.Context, assumed int, of func(n int) vcd.RawCall) (outcome, error) {
	fits := func(n int) (bool, error) { return b.accepts(ctx, kindProfile, of(n)) }
	more, err := fits(assumed + 1)
	if err != nil {
		return outcome{}, err
	}
	same, err := fits(assumed)
	switch {
	case err != nil:
		return outcome{}, err
	case same && !more:
		return number(assumed, howLengthsTried), nil
	}
	low := shortest
	high := assumed
	if more {
		low = assumed + 1
		high = endless
	}
	for _, end := range []struct {
		length int
		fits   bool
		result outcome
	}{
		{low, false, unknown(controlRefused)},
		{high, true, number(0, howLengthsTried)},
	} {
		if ok, err := fits(end.length); err != nil || ok == end.fits {
			return end.result, err
		}
	}
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := fits(middle)
		if err != nil {
			return outcome{}, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return number(low, howLengthsTried), nil
}

// firewallRule returns the request for an inactive firewall rule.
func (b *bench) firewallRule(version string, position map[string]any) vcd.RawCall {
	body := map[string]any{
		"name":        b.nextName("rule"),
		"comments":    markOf(b.run),
		"actionValue": "DROP",
		"direction":   "IN_OUT",
		"ipProtocol":  "IPV4",
	}
	if vcd.CompareVersions(version, secondFirewall) >= 0 {
		body["active"] = false
		body["destinationFirewallIpAddresses"] = []string{"192.0.2.1"}
	} else {
		body["enabled"] = false
		body["description"] = markOf(b.run)
	}
	if position != nil {
		body["relativePosition"] = position
	}
	call := jsonPost(firewallRules(b.gateway.ID, version), body)
	call.Version = version
	return call
}

// edgeRuleCreateSince creates a firewall rule in each API version, until one accepts it.
func edgeRuleCreateSince(ctx context.Context, b *bench) (outcome, error) {
	return b.firstVersion(ctx, nil)
}

// edgeRuleTopSince creates a firewall rule before all others.
func edgeRuleTopSince(ctx context.Context, b *bench) (outcome, error) {
	return b.firstVersion(ctx, map[string]any{"rulePosition": "TOP"})
}

// firstVersion determines the first API version in which a firewall rule can be created.
func (b *bench) firstVersion(ctx context.Context, position map[string]any) (outcome, error) {
	for i, version := range b.versions {
		accepted, err := b.acceptsRule(ctx, b.firewallRule(version, position))
		switch {
		case err != nil:
			return outcome{}, err
		case accepted && i == 0:
			return outcome{value: version, how: howOldestAccepts}, nil
		case accepted:
			return outcome{value: version, how: howVersionsTried}, nil
		}
	}
	return unknown(noVersion), nil
}

// acceptsRule is [bench.accepts] for firewall rules. All its attempts together count as one rule of the limit, and VCD
// may respond with "not found" in API versions without this request.
func (b *bench) acceptsRule(ctx context.Context, call vcd.RawCall) (bool, error) {
	b.created[kindFirewall] = max(b.created[kindFirewall], 1)
	err := b.calls.do(ctx, call)
	if err != nil && !refused(err) && !errors.Is(err, vcd.ErrNotFound) {
		return false, err
	}
	return err == nil, b.sweep(ctx, kindFirewall)
}

// natRule returns the request for a disabled DNAT rule to an address that is reserved for documentation.
func (b *bench) natRule(address netip.Addr) vcd.RawCall {
	return jsonPost(gatewayPath+url.PathEscape(b.gateway.ID)+"/nat/rules", b.document("nat", map[string]any{
		"enabled":           false,
		"ruleType":          "DNAT",
		"type":              "DNAT",
		"externalAddresses": address.String(),
		"internalAddresses": "192.0.2.1",
		"dnatExternalPort":  "40001",
	}))
}

// tryForeign tries a NAT rule with an address that the gateway does not own, and one with an address that it owns.
func (b *bench) tryForeign(ctx context.Context, address netip.Addr, none Text) (outcome, error) {
	own, err := b.freeAddresses(ctx, false, 1)
	if err != nil {
		return outcome{}, err
	}
	if len(own) == 0 {
		return unknown(none), nil
	}
	alone, err := b.refusedAlone(ctx, kindNAT, b.natRule(address), b.natRule(own[0]))
	return is(alone, howForeignRefused, howForeignAccepted), err
}

// uplinkAddressMustBeOwn tries a foreign address of the gateway's external network.
func uplinkAddressMustBeOwn(ctx context.Context, b *bench) (outcome, error) {
	if b.gateway.UsesIPSpaces {
		return unknown(usesSpaces), nil
	}
	address, found := b.foreignAddress()
	if !found {
		return unknown(noForeign), nil
	}
	return b.tryForeign(ctx, address, noFreeAddress)
}

// spaceAddressMustBeAllocated tries an address of the gateway's IP Space that is not allocated to the organization.
func spaceAddressMustBeAllocated(ctx context.Context, b *bench) (outcome, error) {
	if !b.gateway.UsesIPSpaces {
		return unknown(noSpaces), nil
	}
	suggestions, err := b.session.IPSpaces.Suggestions(ctx, b.gateway.ID)
	if err != nil {
		return outcome{}, err
	}
	for _, s := range suggestions {
		address, err := b.unallocated(ctx, s.Space.ID)
		if err != nil {
			return outcome{}, err
		}
		if address.IsValid() {
			return b.tryForeign(ctx, address, noFloatingIP)
		}
	}
	return unknown(noSpaces), nil
}

// unallocated returns an address of an IP Space that is not allocated to the organization, or the zero value if all
// are.
func (b *bench) unallocated(ctx context.Context, id string) (netip.Addr, error) {
	space, err := b.session.IPSpaces.Space(ctx, id)
	if err != nil {
		return netip.Addr{}, err
	}
	have, err := b.session.IPSpaces.FloatingIPs(ctx, id)
	if err != nil {
		return netip.Addr{}, err
	}
	own := map[netip.Addr]bool{}
	for _, a := range have {
		own[a.Address] = true
	}
	var last netip.Addr
	for _, r := range space.Ranges {
		eachAddress(r, func(a netip.Addr) bool {
			if !own[a] && a.Is4() {
				last = a
			}
			return true
		})
	}
	return last, nil
}

// ipSet returns the request for an empty IP set of an owner.
func (b *bench) ipSet(owner string) vcd.RawCall {
	return jsonPost(groupPath, b.document("ips", map[string]any{
		"typeValue":   "IP_SET",
		"type":        "IP_SET",
		"ownerRef":    ref(owner),
		"ipAddresses": []string{},
	}))
}

// groupOwnsFirewallGroups creates an IP set for a gateway in a data center group, and one for the group.
func groupOwnsFirewallGroups(ctx context.Context, b *bench) (outcome, error) {
	if b.gateway.GroupOwner() == b.gateway.ID {
		return unknown(noGroup), nil
	}
	alone, err := b.refusedAlone(ctx, kindGroup, b.ipSet(b.gateway.ID), b.ipSet(b.gateway.GroupOwner()))
	return is(alone, howRefusedAlone, howAccepted), err
}
