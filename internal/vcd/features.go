// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// Features are the features for load balancers that the API versions of a site support. The rights for them may still
// be missing.
type Features struct {
	SharedVIP          bool // virtual services that share an address on different ports: API 37.0, VCD 10.4.0
	IPv6VIP            bool // virtual services with an IPv6 address: API 37.0, VCD 10.4.0
	TransparentMode    bool // virtual services that preserve the address of the client: API 37.1, VCD 10.4.1
	MemberGroups       bool // pools whose members come from an IP set: API 37.1, VCD 10.4.1
	IPSpaces           bool // gateways with addresses from IP Spaces: API 37.1, VCD 10.4.1
	AllocateByValue    bool // allocating a specific address of an IP Space: API 37.2, VCD 10.4.2
	SingleFirewallRule bool // creating a single firewall rule of a gateway: API 38.1, VCD 10.5.1
	HTTPPolicies       bool // rules for the HTTP requests of virtual services: API 38.0, VCD 10.5.0
	HealthMonitors     bool // health monitors with settings, as objects of a gateway: API 39.0, VCD 10.6.0
}

// Features returns the features of the agreed API version, and those of requests that use a later version if VCD offers
// it. It only sends a request if the offered versions are unknown or were read more than an hour ago.
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
	features.SingleFirewallRule = s.offers(singleRuleAPI)
	features.HTTPPolicies = s.offers(httpPolicyAPI)
	features.HealthMonitors = s.offers(healthMonitorAPI)
	return features, nil
}

// offers reports whether the site offers an API version or a later one.
func (s *Session) offers(since transport.Version) bool {
	_, err := s.transport.Site.OfferedSince(since)
	return err == nil
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

// laterCalls are the requests that need a later API version than the oldest supported one.
var laterCalls = []transport.LaterCalls{
	{Under: secondFirewallPath, Since: singleRuleAPI},
	{Under: monitorsPath, Since: healthMonitorAPI},
	{Under: gatewaysPath, Containing: monitorSummariesPath, Since: healthMonitorAPI},
	{Under: servicesPath + "/", Containing: httpPolicyPath, Since: httpPolicyAPI},
	// Older versions do not show the IDs of the health monitors of a pool, so a write could lose those with settings.
	{Under: poolsPath + "/", Since: healthMonitorAPI, Optional: true},
}
