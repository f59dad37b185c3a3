// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// Features are what the API versions that a site offers let a load balancer be made of. A right may still be missing.
type Features struct {
	SharedVIP          bool // several virtual services with one address and different ports: API 37.0, VCD 10.4.0
	IPv6VIP            bool // virtual services with an IPv6 address: API 37.0, VCD 10.4.0
	TransparentMode    bool // virtual services that keep the address of the client: API 37.1, VCD 10.4.1
	MemberGroups       bool // pools whose members are those of an IP set: API 37.1, VCD 10.4.1
	IPSpaces           bool // gateways with addresses from IP Spaces: API 37.1, VCD 10.4.1
	AllocateByValue    bool // asking an IP Space for one certain address: API 37.2, VCD 10.4.2
	SingleFirewallRule bool // creating a firewall rule of a gateway without the others: API 38.1, VCD 10.5.1
}

// Features returns what the site allows: in calls of the agreed API version, and in those that ask for a later one, if
// VCD offers that. It makes a call only if what VCD offers is not known, or has not been asked for an hour.
func (s *Session) Features(ctx context.Context) (Features, error) {
	s.transport.Site.ForgetOldVersions()
	text, err := s.transport.Negotiate(ctx)
	if err != nil {
		return Features{}, err
	}
	version, ok := transport.ParseVersion(text)
	if !ok {
		return Features{}, errors.New("the negotiated API version " + text + " is invalid")
	}
	features := featuresOf(version)
	_, err = s.transport.Site.OfferedSince(singleRuleAPI)
	features.SingleFirewallRule = err == nil
	return features, nil
}

func featuresOf(agreed transport.Version) Features {
	since := func(minor int) bool { return agreed.Compare(transport.Version{Major: 37, Minor: minor}) >= 0 }
	return Features{
		SharedVIP:       since(0),
		IPv6VIP:         since(0),
		TransparentMode: since(1),
		MemberGroups:    since(1),
		IPSpaces:        since(1),
		AllocateByValue: since(2),
	}
}

// calledLater are the calls that need a later version of the API than the oldest one.
var calledLater = []transport.LaterCalls{{Under: secondFirewallPath, Since: singleRuleAPI}}
