// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A verb is the kind of a step.
type verb int

// Kinds of steps.
const (
	associate verb = iota
	tag
	untag
	release
	createRule
	updateRule
	deleteRule
	addMembers
	removeMembers
	createPolicy
	deletePolicy
	openFirewall
	tagFirewalls
	closeFirewall
	openACL
	closeACL
)

// A step is one write to CloudStack. Objects that earlier steps of the plan create are looked up when the step runs:
// addresses by IP address, rules by name and address.
type step struct {
	verb  verb
	text  string
	owner loadbalancer.Owner

	address   string // public address
	requested bool   // the Service requests the address
	tag       cloudstack.Tag
	rule      cloudstack.Rule
	policy    cloudstack.Policy
	vms       []string              // IDs of virtual machines
	firewalls []cloudstack.Firewall // exactly one, except for tagFirewalls
	acl       cloudstack.ACL
}

var _ loadbalancer.Step = step{}

// String implements [loadbalancer.Step].
func (s step) String() string { return s.text }

// Deferrable implements [loadbalancer.Step].
func (s step) Deferrable() bool { return false }

// Uses implements [loadbalancer.Step].
func (s step) Uses() []loadbalancer.Use {
	a, err := netip.ParseAddr(s.address)
	switch {
	case err != nil:
		return nil
	case s.verb == associate:
		return []loadbalancer.Use{{Address: a, Kind: "load balancer", Name: s.owner.String(), Owner: s.owner}}
	case s.verb == createRule:
		return []loadbalancer.Use{{
			Address:  a,
			Protocol: loadbalancer.Protocol(strings.ToUpper(transport(s.rule.Protocol))),
			Port:     int(s.rule.PublicPort),
			Kind:     "rule",
			Name:     s.rule.Name,
			Owner:    s.owner,
		}}
	}
	return nil
}

// Interfaces of the client that steps use: its writes, and one read.
type (
	addressWriter interface {
		Addresses(ctx context.Context, n cloudstack.Network) ([]cloudstack.Address, error)
		Associate(ctx context.Context, n cloudstack.Network, address string) (cloudstack.Address, error)
		Disassociate(ctx context.Context, id string) error
		Tag(ctx context.Context, kind string, ids []string, tag cloudstack.Tag) error
		Untag(ctx context.Context, kind, id string, tag cloudstack.Tag) error
	}
	ruleWriter interface {
		CreateRule(ctx context.Context, r cloudstack.Rule) (cloudstack.Rule, error)
		UpdateRule(ctx context.Context, r cloudstack.Rule) error
		DeleteRule(ctx context.Context, id string) error
		AddMembers(ctx context.Context, rule string, vms []string) error
		RemoveMembers(ctx context.Context, rule string, vms []string) error
	}
	policyWriter interface {
		CreatePolicy(ctx context.Context, rule string, p cloudstack.Policy) (cloudstack.Policy, error)
		DeletePolicy(ctx context.Context, id string) error
	}
	filterWriter interface {
		Tag(ctx context.Context, kind string, ids []string, tag cloudstack.Tag) error
		CreateFirewall(ctx context.Context, f cloudstack.Firewall) (cloudstack.Firewall, error)
		DeleteFirewall(ctx context.Context, id string) error
		CreateACL(ctx context.Context, a cloudstack.ACL) (cloudstack.ACL, error)
		DeleteACL(ctx context.Context, id string) error
	}
)

// run executes the step, and returns a function that applies the change to the state. It is idempotent.
func (s step) run(ctx context.Context, to *cloudstack.Client, have *state) (change func(*state), err error) {
	switch s.verb {
	case associate, tag, untag, release:
		return s.runAddress(ctx, to, have)
	case createRule, updateRule, deleteRule:
		return s.runRule(ctx, to, have)
	case addMembers, removeMembers:
		return s.runMembers(ctx, to, have)
	case createPolicy, deletePolicy:
		return s.runPolicy(ctx, to, have)
	default:
		return s.runFilter(ctx, to, have)
	}
}

func (s step) runAddress(ctx context.Context, to addressWriter, have *state) (func(*state), error) {
	a, found := have.address(s.address)
	if s.verb == associate {
		if found {
			return func(*state) {}, nil
		}
		return s.associate(ctx, to, have)
	}
	if !found {
		if s.verb == release || s.verb == untag {
			return func(*state) {}, nil
		}
		return nil, fmt.Errorf("address %s is no longer associated: %w", s.address, loadbalancer.ErrBusy)
	}
	switch s.verb {
	case tag:
		return func(h *state) {
			h.edit(a.ID, func(a *cloudstack.Address) { a.Tags = append(slices.Clone(a.Tags), s.tag) })
		}, to.Tag(ctx, cloudstack.TagAddress, []string{a.ID}, s.tag)
	case untag:
		return func(h *state) {
			h.edit(a.ID, func(a *cloudstack.Address) {
				a.Tags = slices.DeleteFunc(slices.Clone(a.Tags), func(t cloudstack.Tag) bool { return t.Key == tagKey })
			})
		}, to.Untag(ctx, cloudstack.TagAddress, a.ID, s.tag)
	default:
		return func(h *state) {
			h.addresses = without(h.addresses, func(x cloudstack.Address) bool { return x.ID == a.ID })
		}, ignoreMissing(to.Disassociate(ctx, a.ID))
	}
}

// associate associates an address: the requested one, or any if free addresses are not visible.
func (s step) associate(ctx context.Context, to addressWriter, have *state) (func(*state), error) {
	associate := s.associateAny
	if s.address != "" {
		associate = func(ctx context.Context, to addressWriter, n cloudstack.Network) (cloudstack.Address, error) {
			return to.Associate(ctx, n, s.address)
		}
	}
	a, err := associate(ctx, to, have.network)
	if err != nil {
		return nil, err
	}
	if a.NetworkID == "" && a.VPCID == "" {
		a.NetworkID = have.network.ID
		a.VPCID = have.network.VPCID
	}
	return func(h *state) {
		h.addresses = append(h.addresses, a)
		h.free = without(h.free, func(x cloudstack.Address) bool { return x.IPAddress == a.IPAddress })
	}, nil
}

// associateAny associates any address and tags it at once. An untagged address would not be found again, so the address
// is released if tagging fails.
func (s step) associateAny(ctx context.Context, to addressWriter, n cloudstack.Network) (cloudstack.Address, error) {
	before, err := to.Addresses(ctx, n)
	if err != nil {
		return cloudstack.Address{}, err
	}
	a, err := to.Associate(ctx, n, "")
	if mayHaveExecuted(err) {
		a, err = findAssociated(ctx, to, n, before, err)
	}
	if err != nil {
		return a, err
	}
	if err := to.Tag(ctx, cloudstack.TagAddress, []string{a.ID}, s.tag); err != nil {
		return a, releaseUntagged(ctx, to, a, err)
	}
	a.Tags = append(a.Tags, s.tag)
	return a, nil
}

// findAssociated returns the address of an association whose response was lost: the only new address that nothing uses
// yet. It fails if there is none or more than one, because then nothing proves which address it is.
func findAssociated(
	ctx context.Context, to addressWriter, n cloudstack.Network, before []cloudstack.Address, wrong error,
) (cloudstack.Address, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	after, err := to.Addresses(ctx, n)
	if err != nil {
		return cloudstack.Address{}, fmt.Errorf("%w; release the untagged address if one was associated: %w",
			wrong, err)
	}
	came := without(after, func(a cloudstack.Address) bool {
		_, marked := markerOf(a)
		return marked || a.IsSourceNAT || a.IsStaticNAT ||
			slices.ContainsFunc(before, func(b cloudstack.Address) bool { return b.ID == a.ID })
	})
	switch len(came) {
	case 0:
		return cloudstack.Address{}, wrong
	case 1:
		return came[0], nil
	}
	var names []string
	for _, a := range came {
		names = append(names, a.IPAddress)
	}
	return cloudstack.Address{}, fmt.Errorf("%w; one of the addresses %s is unused: release it",
		wrong, strings.Join(names, ", "))
}

// releaseTimeout limits the release of an address, which also runs while the process exits.
const releaseTimeout = 30 * time.Second

// releaseUntagged releases an address that could not be tagged, and returns all errors.
func releaseUntagged(ctx context.Context, to addressWriter, a cloudstack.Address, wrong error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	wrong = fmt.Errorf("tagging the address %s: %w", a.IPAddress, wrong)
	if err := ignoreMissing(to.Disassociate(ctx, a.ID)); err != nil {
		return errors.Join(wrong, fmt.Errorf("the address %s remains in the account: release it: %w", a.IPAddress, err))
	}
	return wrong
}

func (s step) runRule(ctx context.Context, to ruleWriter, have *state) (func(*state), error) {
	r := s.rule
	switch s.verb {
	case createRule:
		if a, found := have.address(s.address); found {
			r.AddressID = a.ID
		}
		if _, made := have.rule("", r.Name, s.address); made {
			return func(*state) {}, nil
		}
		made, err := to.CreateRule(ctx, r)
		return func(h *state) {
			h.rules = append(h.rules, made)
			h.members[made.ID] = nil
			h.edit(made.AddressID, func(a *cloudstack.Address) { a.NetworkID = h.network.ID })
		}, err
	case updateRule:
		return func(h *state) {
			for i := range h.rules {
				if h.rules[i].ID == r.ID {
					h.rules[i] = merged(h.rules[i], r)
				}
			}
		}, to.UpdateRule(ctx, r)
	default:
		return func(h *state) {
			h.rules = without(h.rules, func(x cloudstack.Rule) bool { return x.ID == r.ID })
			delete(h.members, r.ID)
			delete(h.policies, r.ID)
		}, ignoreMissing(to.DeleteRule(ctx, r.ID))
	}
}

// merged returns a rule with the changed fields of an update.
func merged(have, now cloudstack.Rule) cloudstack.Rule {
	for _, x := range []struct{ to, from *string }{
		{&have.Name, &now.Name},
		{&have.Description, &now.Description},
		{&have.Protocol, &now.Protocol},
		{&have.Algorithm, &now.Algorithm},
		{&have.CIDRs, &now.CIDRs},
	} {
		if *x.from != "" {
			*x.to = *x.from
		}
	}
	return have
}

func (s step) runMembers(ctx context.Context, to ruleWriter, have *state) (func(*state), error) {
	r, found := have.rule(s.rule.ID, s.rule.Name, s.address)
	if !found {
		return nil, fmt.Errorf("rule %s no longer exists: %w", s.rule.Name, loadbalancer.ErrBusy)
	}
	now := have.members[r.ID]
	if s.verb == addMembers {
		vms := without(s.vms, func(vm string) bool { return slices.Contains(now, vm) })
		if len(vms) == 0 {
			return func(*state) {}, nil
		}
		return func(h *state) { h.members[r.ID] = append(slices.Clone(now), vms...) }, to.AddMembers(ctx, r.ID, vms)
	}
	return func(h *state) {
		h.members[r.ID] = without(now, func(vm string) bool { return slices.Contains(s.vms, vm) })
	}, to.RemoveMembers(ctx, r.ID, s.vms)
}

func (s step) runFilter(ctx context.Context, to filterWriter, have *state) (func(*state), error) {
	switch s.verb {
	case openFirewall:
		f := s.firewalls[0]
		if a, found := have.address(s.address); found {
			f.AddressID = a.ID
		}
		made, err := to.CreateFirewall(ctx, f)
		return func(h *state) { h.firewalls = append(h.firewalls, made) }, err
	case tagFirewalls:
		ids := s.untagged(have)
		if len(ids) == 0 {
			return func(*state) {}, nil
		}
		return func(h *state) { h.tagFirewalls(ids, s.tag) }, to.Tag(ctx, cloudstack.TagFirewall, ids, s.tag)
	case closeFirewall:
		id := s.firewalls[0].ID
		return func(h *state) {
			h.firewalls = without(h.firewalls, func(f cloudstack.Firewall) bool { return f.ID == id })
		}, ignoreMissing(to.DeleteFirewall(ctx, id))
	case openACL:
		made, err := to.CreateACL(ctx, s.acl)
		return func(h *state) { h.acls = append(h.acls, made) }, err
	default:
		return func(h *state) {
			h.acls = without(h.acls, func(a cloudstack.ACL) bool { return a.ID == s.acl.ID })
		}, ignoreMissing(to.DeleteACL(ctx, s.acl.ID))
	}
}

// untagged returns the IDs of the step's firewall rules that carry no marker. Rules that earlier steps created are
// found by protocol, ports and CIDRs, which are unique per address in CloudStack.
func (s step) untagged(have *state) []string {
	a, _ := have.address(s.address)
	var ids []string
	for _, f := range have.firewalls {
		_, marked := markerIn(f.Tags)
		if !marked && slices.ContainsFunc(s.firewalls, func(wanted cloudstack.Firewall) bool {
			return wanted.ID == f.ID || wanted.ID == "" && f.AddressID == a.ID && sameOpening(f, wanted)
		}) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// sameOpening reports whether two firewall rules admit the same traffic.
func sameOpening(a, b cloudstack.Firewall) bool {
	return strings.EqualFold(a.Protocol, b.Protocol) && a.StartPort == b.StartPort && a.EndPort == b.EndPort &&
		slices.Equal(cidrs(a.CIDRs), cidrs(b.CIDRs))
}

// tagFirewalls adds a tag to firewall rules by their IDs.
func (s *state) tagFirewalls(ids []string, tag cloudstack.Tag) {
	s.firewalls = slices.Clone(s.firewalls) // running steps may read the slice
	for i := range s.firewalls {
		if slices.Contains(ids, s.firewalls[i].ID) {
			s.firewalls[i].Tags = append(slices.Clone(s.firewalls[i].Tags), tag)
		}
	}
}

// rule returns a rule by its ID or, if the ID is unknown, by its name and address. Rules for the same port at different
// addresses have the same name.
func (s *state) rule(id, name, address string) (cloudstack.Rule, bool) {
	i := slices.IndexFunc(s.rules, func(r cloudstack.Rule) bool {
		return r.ID == id || id == "" && r.Name == name && r.Address == address
	})
	if i < 0 {
		return cloudstack.Rule{}, false
	}
	return s.rules[i], true
}

// edit changes an address by its ID.
func (s *state) edit(id string, change func(*cloudstack.Address)) {
	for i := range s.addresses {
		if s.addresses[i].ID == id {
			change(&s.addresses[i])
		}
	}
}

func (s step) runPolicy(ctx context.Context, to policyWriter, have *state) (func(*state), error) {
	r, found := have.rule(s.rule.ID, s.rule.Name, s.address)
	if !found {
		return nil, fmt.Errorf("rule %s no longer exists: %w", s.rule.Name, loadbalancer.ErrBusy)
	}
	if s.verb == deletePolicy {
		return func(h *state) { delete(h.policies, r.ID) }, ignoreMissing(to.DeletePolicy(ctx, s.policy.ID))
	}
	made, err := to.CreatePolicy(ctx, r.ID, s.policy)
	return func(h *state) { h.policies[r.ID] = []cloudstack.Policy{made} }, err
}
