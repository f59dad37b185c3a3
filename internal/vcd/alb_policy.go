// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// httpPolicyPath leads to the HTTP policy of a virtual service, under the path of the service.
const httpPolicyPath = "/httpPolicy/"

// httpPolicyAPI is the first version with HTTP policies, that of VCD 10.5.0.
var httpPolicyAPI = transport.Version{Major: 38, Minor: 0}

// Names of the rules of this program. Rules with other names belong to others.
const (
	redirectRule = "cluster-api-provider-vcd-redirect-https"
	headersRule  = "cluster-api-provider-vcd-headers"
)

// Lists of rules in the HTTP policy of a virtual service.
const (
	requestRules  = "requestRules"
	responseRules = "responseRules"
)

// HTTPRules are the rules of this program in the HTTP policy of a virtual service. The zero value means none.
type HTTPRules struct {
	// Protocol of the requests that the rules match, HTTP or HTTPS. It is empty without rules.
	Protocol Application
	// Redirect is the port to which requests are redirected, as HTTPS. 0 means no redirect.
	Redirect int
	// RequestHeaders and ResponseHeaders are headers that are set or removed.
	RequestHeaders, ResponseHeaders []Header
	// Changed means that rules were changed by others.
	Changed bool
}

// A Header is an HTTP header that is set to a value, or removed if the value is empty.
type Header struct {
	Name, Value string
}

// wireHTTPRule is a rule of an HTTP policy, as VCD wrote it. Rules have no IDs.
type wireHTTPRule wire.Object

// Key implements the item of a list.
func (wireHTTPRule) Key() string { return "" }

func (r wireHTTPRule) name() string { return wire.Object(r).Text("name") }

func (r wireHTTPRule) isOurs() bool { return r.name() == redirectRule || r.name() == headersRule }

// newRule returns a rule for all requests of a protocol. The caller adds its action.
func newRule(name string, protocol Application) wire.Object {
	o := wire.Object{}
	o.Set("name", name)
	o.Set("active", true)
	o.Set("logging", false)
	o.Set("matchCriteria", map[string]string{"protocol": string(protocol)})
	return o
}

type wireRedirect struct {
	Protocol   string `json:"protocol"`
	Port       int    `json:"port"`
	StatusCode int    `json:"statusCode"`
	KeepQuery  bool   `json:"keepQuery"`
}

// redirectAction returns the redirect to HTTPS on a port, with host, path and query of the request.
func redirectAction(port int) wireRedirect {
	return wireRedirect{
		Protocol:   "HTTPS",
		Port:       port,
		StatusCode: http.StatusMovedPermanently,
		KeepQuery:  true,
	}
}

type wireHeaderAction struct {
	Action string `json:"action"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// Actions on headers.
const (
	addHeader    = "ADD"
	removeHeader = "REMOVE"
)

// headerActions returns the actions that set or remove headers. A header is removed before it is added, because VCD
// does not document whether its third action, REPLACE, adds a missing header.
func headerActions(headers []Header) []wireHeaderAction {
	var actions []wireHeaderAction
	for _, h := range headers {
		actions = append(actions, wireHeaderAction{Action: removeHeader, Name: h.Name})
		if h.Value != "" {
			actions = append(actions, wireHeaderAction{Action: addHeader, Name: h.Name, Value: h.Value})
		}
	}
	return actions
}

// headersOf returns the headers that actions set or remove.
func headersOf(actions []wireHeaderAction) []Header {
	var headers []Header
	for _, a := range actions {
		last := len(headers) - 1
		if a.Action == addHeader && last >= 0 && headers[last].Name == a.Name {
			headers[last].Value = a.Value
			continue
		}
		headers = append(headers, Header{Name: a.Name})
	}
	return headers
}

// in returns the rules that belong into a list.
func (r *HTTPRules) in(list string) []wireHTTPRule {
	var rules []wireHTTPRule
	headers := r.ResponseHeaders
	if list == requestRules {
		headers = r.RequestHeaders
		if r.Redirect != 0 {
			o := newRule(redirectRule, r.Protocol)
			o.Set("redirectAction", redirectAction(r.Redirect))
			rules = append(rules, wireHTTPRule(o))
		}
	}
	if len(headers) > 0 {
		o := newRule(headersRule, r.Protocol)
		o.Set("headerActions", headerActions(headers))
		rules = append(rules, wireHTTPRule(o))
	}
	return rules
}

// add adds a rule of this program from a list.
func (r *HTTPRules) add(list string, rule wireHTTPRule) {
	var active bool
	var match struct {
		Protocol Application `json:"protocol"`
	}
	o := wire.Object(rule)
	_ = json.Unmarshal(o["active"], &active)       // false unless it is true
	_ = json.Unmarshal(o["matchCriteria"], &match) // may be null
	r.Changed = r.Changed || !active || r.Protocol != "" && r.Protocol != match.Protocol
	r.Protocol = match.Protocol
	if rule.name() == redirectRule {
		var action wireRedirect
		_ = json.Unmarshal(o["redirectAction"], &action) // may be null
		r.Redirect = action.Port
		r.Changed = r.Changed || list != requestRules || action != redirectAction(action.Port)
		return
	}
	var actions []wireHeaderAction
	_ = json.Unmarshal(o["headerActions"], &actions) // may be null
	headers := headersOf(actions)
	r.Changed = r.Changed || !slices.Equal(actions, headerActions(headers))
	if list == requestRules {
		r.RequestHeaders = headers
	} else {
		r.ResponseHeaders = headers
	}
}

// HTTPRules reads the rules of this program in the HTTP policy of a virtual service. See Features.HTTPPolicies. It
// requires the right "Organization vDC Gateway: View Load Balancer".
func (b *Balancers) HTTPRules(ctx context.Context, service string) (HTTPRules, error) {
	var found HTTPRules
	for _, list := range []string{requestRules, responseRules} {
		rules, err := b.rules(ctx, service, list)
		if err != nil {
			return HTTPRules{}, err
		}
		for _, rule := range rules {
			if rule.isOurs() {
				found.add(list, rule)
			}
		}
	}
	return found, nil
}

// SetRequestRules starts a change of the rules of this program for requests to a virtual service, which come first in
// its policy. Rules of others are kept.
func (b *Balancers) SetRequestRules(ctx context.Context, service string, want HTTPRules) (Task, error) {
	return b.setRules(ctx, service, requestRules, want)
}

// SetResponseRules is SetRequestRules for the rules for responses.
func (b *Balancers) SetResponseRules(ctx context.Context, service string, want HTTPRules) (Task, error) {
	return b.setRules(ctx, service, responseRules, want)
}

func (b *Balancers) setRules(ctx context.Context, service, list string, want HTTPRules) (Task, error) {
	rules, err := b.rules(ctx, service, list)
	if err != nil {
		return Task{}, err
	}
	ours := want.in(list)
	theirs := slices.DeleteFunc(slices.Clone(rules), wireHTTPRule.isOurs)
	if len(ours) == 0 && len(theirs) == len(rules) {
		return Task{State: TaskSucceeded, Owner: service}, nil
	}
	values := append([]wireHTTPRule{}, ours...)
	values = append(values, theirs...)
	task, err := startJSON(ctx, b.client, http.MethodPut, policyRulesPath(service, list), map[string]any{"values": values})
	return task, failure.Wrap(err, "changing the HTTP policy of virtual service", service)
}

func (b *Balancers) rules(ctx context.Context, service, list string) ([]wireHTTPRule, error) {
	l := api.Listing{Path: policyRulesPath(service, list), What: "HTTP rules", Of: " of virtual service " + service}
	return api.ListAll[wireHTTPRule](ctx, b.client, l)
}

func policyRulesPath(service, list string) string {
	return servicePath(service) + httpPolicyPath + list
}
