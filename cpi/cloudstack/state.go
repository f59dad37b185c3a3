// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A state is the observed state of a network, with the objects of all owners.
type state struct {
	network   cloudstack.Network
	addresses []cloudstack.Address
	free      []cloudstack.Address
	rules     []cloudstack.Rule
	firewalls []cloudstack.Firewall
	acls      []cloudstack.ACL
	// shared are the IDs of addresses that are not released only because they have port forwarding rules or a VPN.
	shared   []string
	members  map[string][]string            // IDs of virtual machines, by rule; a rule may be missing
	policies map[string][]cloudstack.Policy // by rule; a rule may be missing
	vms      []cloudstack.VM
	// updatesCIDRs means that CloudStack can change the CIDRs of a rule, which it can since 4.22.
	updatesCIDRs bool
}

// A filter is the mechanism that admits traffic from outside to the network.
type filter int

// Filters.
const (
	unfiltered filter = iota // all traffic is admitted
	firewalled               // firewall rules of public addresses admit traffic
	listed                   // a network ACL list admits traffic
	closed                   // a list that cannot be changed denies all traffic
)

// Names of the predefined ACL lists of CloudStack, which cannot be changed.
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

// address returns a public address of the network by its IP address.
func (s *state) address(ip string) (cloudstack.Address, bool) {
	i := slices.IndexFunc(s.addresses, func(a cloudstack.Address) bool { return a.IPAddress == ip })
	if i < 0 {
		return cloudstack.Address{}, false
	}
	return s.addresses[i], true
}

// here reports whether an address belongs to this network, or to its VPC and no tier yet.
func (s *state) here(a cloudstack.Address) bool {
	return a.NetworkID == s.network.ID || a.NetworkID == "" && a.VPCID != "" && a.VPCID == s.network.VPCID
}

// tagKey is the key of the tag on firewall rules, and on addresses that are released with their load balancer.
const tagKey = "kubernetes-load-balancer"

// maxTag is the maximum length of a tag value.
const maxTag = 255

// A marker is the ownership marker of an object.
type marker struct {
	owner loadbalancer.Owner
	// keep are the IDs of unmarked firewall rules for the same port that existed before the rule.
	keep []string
	// sticky means that the rule has, or is about to get, a stickiness policy of this backend.
	sticky bool
}

// String returns the marker in the form in which descriptions contain it.
func (m marker) String() string {
	text := fmt.Sprintf("kubernetes cluster=%s uid=%s service=%s", m.owner.Cluster, m.owner.UID, m.owner)
	if len(m.keep) > 0 {
		text += " keep=" + strings.Join(m.keep, "+")
	}
	if m.sticky {
		text += " sticky=true"
	}
	return text
}

// tag returns the tag for addresses and firewall rules.
func (m marker) tag() cloudstack.Tag {
	text := m.String()
	return cloudstack.Tag{Key: tagKey, Value: text[:min(len(text), maxTag)]}
}

// parseMarker parses a marker.
func parseMarker(text string) (marker, bool) {
	rest, ok := strings.CutPrefix(text, "kubernetes ")
	if !ok {
		return marker{}, false
	}
	var m marker
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

// markers returns the markers of all objects in the network, of all clusters.
func (s *state) markers() []marker {
	var out []marker
	add := func(m marker, marked bool) {
		if marked {
			out = append(out, m)
		}
	}
	for _, r := range s.rules {
		add(parseMarker(r.Description))
	}
	for _, f := range s.firewalls {
		add(markerIn(f.Tags))
	}
	for _, a := range s.acls {
		add(parseMarker(a.Reason))
	}
	for _, a := range s.addresses {
		if s.here(a) {
			add(markerOf(a))
		}
	}
	return out
}

// markerOf returns the marker of an address.
func markerOf(a cloudstack.Address) (marker, bool) { return markerIn(a.Tags) }

// markerIn returns the marker in the tags of an object.
func markerIn(tags []cloudstack.Tag) (marker, bool) {
	for _, tag := range tags {
		if tag.Key == tagKey {
			return parseMarker(tag.Value)
		}
	}
	return marker{}, false
}

// same reports whether two owners are the same.
func same(a, b loadbalancer.Owner) bool { return a.Cluster == b.Cluster && a.UID == b.UID }

// nameOf returns the name of an owner's load balancer, as the original controller generated it. Names of rules begin
// with it.
func nameOf(o loadbalancer.Owner) string {
	name := "a" + strings.ReplaceAll(o.UID, "-", "")
	return name[:min(len(name), 32)]
}

// transport returns the transport protocol of a rule's protocol.
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

// ownedBy reports whether a rule belongs to an owner.
func ownedBy(r cloudstack.Rule, owner loadbalancer.Owner) bool {
	if m, marked := parseMarker(r.Description); marked {
		return same(m.owner, owner)
	}
	return inheritedBy(r, owner)
}

// inheritedBy reports whether a rule was created for an owner by the original controller, or by the in-tree provider of
// Kubernetes before it.
func inheritedBy(r cloudstack.Rule, owner loadbalancer.Owner) bool {
	_, marked := parseMarker(r.Description)
	return !marked && strings.HasPrefix(r.Name, nameOf(owner)+"-")
}
