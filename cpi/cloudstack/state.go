// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A state is what stands in a network, of all owners.
type state struct {
	network   cloudstack.Network
	addresses []cloudstack.Address
	free      []cloudstack.Address
	rules     []cloudstack.Rule
	firewalls []cloudstack.Firewall
	acls      []cloudstack.ACL
	// shared are the ids of addresses that would be released, but for port forwarding or a VPN at them.
	shared   []string
	members  map[string][]string            // ids of virtual machines, by rule; a rule may be missing
	policies map[string][]cloudstack.Policy // by rule; a rule may be missing
	vms      []cloudstack.VM
	// updatesCIDRs means that CloudStack can change the CIDRs of a rule, as it can from 4.22 on.
	updatesCIDRs bool
}

// A filter is how traffic from outside to the network is let in.
type filter int

// Filters.
const (
	unfiltered filter = iota // all of it
	firewalled               // by firewall rules of public addresses
	listed                   // by a network ACL list
	closed                   // by a list that cannot be changed: none of it
)

// Names of the ACL lists that CloudStack has and that cannot be changed.
const (
	defaultAllow = "default_allow"
	defaultDeny  = "default_deny"
)

func (s *state) filter() filter {
	switch n := s.network; {
	case n.VPCID != "" && n.Has("NetworkACL"):
		switch n.ACLName {
		case defaultAllow:
			return unfiltered
		case defaultDeny:
			return closed
		}
		return listed
	case n.VPCID == "" && n.Has("Firewall"):
		return firewalled
	}
	return unfiltered
}

// address returns a public address of the network.
func (s *state) address(ip string) (cloudstack.Address, bool) {
	i := slices.IndexFunc(s.addresses, func(a cloudstack.Address) bool { return a.IPAddress == ip })
	if i < 0 {
		return cloudstack.Address{}, false
	}
	return s.addresses[i], true
}

// here reports whether an address is of this network, or of no tier of its VPC yet.
func (s *state) here(a cloudstack.Address) bool {
	return a.NetworkID == s.network.ID || a.NetworkID == "" && a.VPCID != "" && a.VPCID == s.network.VPCID
}

// tagKey is the key of the tag on addresses that are released with their load balancer, and on firewall rules.
const tagKey = "kubernetes-load-balancer"

// maxTag is the length of the longest value of a tag.
const maxTag = 255

// A mark says whose an object is.
type mark struct {
	owner loadbalancer.Owner
	// keep are the ids of firewall rules without a mark for the same port that others made before.
	keep []string
	// sticky means that the rule has, or is about to get, a stickiness policy of ours.
	sticky bool
}

// String writes the mark for descriptions.
func (m mark) String() string {
	text := fmt.Sprintf("kubernetes cluster=%s uid=%s service=%s", m.owner.Cluster, m.owner.UID, m.owner)
	if len(m.keep) > 0 {
		text += " keep=" + strings.Join(m.keep, "+")
	}
	if m.sticky {
		text += " sticky=true"
	}
	return text
}

// tag returns the tag of addresses and firewall rules.
func (m mark) tag() cloudstack.Tag {
	text := m.String()
	return cloudstack.Tag{Key: tagKey, Value: text[:min(len(text), maxTag)]}
}

// parseMark reads a mark.
func parseMark(text string) (mark, bool) {
	rest, ok := strings.CutPrefix(text, "kubernetes ")
	if !ok {
		return mark{}, false
	}
	var m mark
	for word := range strings.SplitSeq(rest, " ") {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "cluster":
			m.owner.Cluster = value
		case "uid":
			m.owner.UID = value
		case "service":
			m.owner.Namespace, m.owner.Name, _ = strings.Cut(value, "/")
		case "keep":
			m.keep = strings.Split(value, "+")
		case "sticky":
			m.sticky = value == "true"
		}
	}
	return m, m.owner.Cluster != "" && m.owner.UID != ""
}

// marks returns those of all objects in the network, of all clusters.
func (s *state) marks() []mark {
	var out []mark
	add := func(m mark, marked bool) {
		if marked {
			out = append(out, m)
		}
	}
	for _, r := range s.rules {
		add(parseMark(r.Description))
	}
	for _, f := range s.firewalls {
		add(markIn(f.Tags))
	}
	for _, a := range s.acls {
		add(parseMark(a.Reason))
	}
	for _, a := range s.addresses {
		if s.here(a) {
			add(holder(a))
		}
	}
	return out
}

// holder returns the mark on an address.
func holder(a cloudstack.Address) (mark, bool) { return markIn(a.Tags) }

// markIn returns the mark in the tags of an object.
func markIn(tags []cloudstack.Tag) (mark, bool) {
	for _, tag := range tags {
		if tag.Key == tagKey {
			return parseMark(tag.Value)
		}
	}
	return mark{}, false
}

// same reports whether two owners are one.
func same(a, b loadbalancer.Owner) bool { return a.Cluster == b.Cluster && a.UID == b.UID }

// nameOf returns the name that the original gave the load balancer of an owner, with which names of rules begin.
func nameOf(o loadbalancer.Owner) string {
	name := "a" + strings.ReplaceAll(o.UID, "-", "")
	return name[:min(len(name), 32)]
}

// transport returns the protocol of packets.
func transport(protocol string) string {
	if p := strings.ToLower(protocol); p != protoProxy {
		return p
	}
	return protoTCP
}

// Protocols of rules.
const (
	protoTCP   = "tcp"
	protoUDP   = "udp"
	protoProxy = "tcp-proxy"
)

// ownedBy reports whether a rule is an owner's.
func ownedBy(r cloudstack.Rule, owner loadbalancer.Owner) bool {
	if m, marked := parseMark(r.Description); marked {
		return same(m.owner, owner)
	}
	return inheritedBy(r, owner)
}

// inheritedBy reports whether the original, or the provider in Kubernetes before it, made a rule for an owner.
func inheritedBy(r cloudstack.Rule, owner loadbalancer.Owner) bool {
	_, marked := parseMark(r.Description)
	return !marked && strings.HasPrefix(r.Name, nameOf(owner)+"-")
}
