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

// redirectRule is the name of the rule that redirects HTTP requests. Rules with other names belong to others.
const redirectRule = "cluster-api-provider-vcd-redirect-https"

// wireRequestRule is a rule of an HTTP policy, as VCD wrote it. Rules have no IDs.
type wireRequestRule wire.Object

// Key implements the item of a list.
func (wireRequestRule) Key() string { return "" }

func (r wireRequestRule) isRedirect() bool { return wire.Object(r).Text("name") == redirectRule }

type wireRedirect struct {
	Protocol   string `json:"protocol"`
	Port       int    `json:"port"`
	StatusCode int    `json:"statusCode"`
	KeepQuery  bool   `json:"keepQuery"`
}

// matchedProtocol is the protocol of the requests that are redirected.
const matchedProtocol = "HTTP"

// redirectAction returns the redirect to HTTPS on a port, with host, path and query of the request.
func redirectAction(port int) wireRedirect {
	return wireRedirect{
		Protocol:   "HTTPS",
		Port:       port,
		StatusCode: http.StatusMovedPermanently,
		KeepQuery:  true,
	}
}

// redirectTo returns the rule that redirects HTTP requests to HTTPS on a port.
func redirectTo(port int) wireRequestRule {
	o := wire.Object{}
	o.Set("name", redirectRule)
	o.Set("active", true)
	o.Set("logging", false)
	o.Set("matchCriteria", map[string]string{"protocol": matchedProtocol})
	o.Set("redirectAction", redirectAction(port))
	return wireRequestRule(o)
}

// Redirect returns the port to which the rule of this program redirects the HTTP requests of a virtual service. It
// returns 0 if there is no such rule, and -1 if the rule was changed. See Features.HTTPPolicies. It requires the right
// "Organization vDC Gateway: View Load Balancer".
func (b *Balancers) Redirect(ctx context.Context, service string) (int, error) {
	rules, err := b.requestRules(ctx, service)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(rules, wireRequestRule.isRedirect)
	if i < 0 {
		return 0, nil
	}
	rule := wire.Object(rules[i])
	var active bool
	var match struct {
		Protocol string `json:"protocol"`
	}
	var action wireRedirect
	_ = json.Unmarshal(rule["active"], &active)         // false unless it is true
	_ = json.Unmarshal(rule["matchCriteria"], &match)   // may be null
	_ = json.Unmarshal(rule["redirectAction"], &action) // may be null
	if !active || match.Protocol != matchedProtocol || action != redirectAction(action.Port) {
		return -1, nil
	}
	return action.Port, nil
}

// SetRedirect starts a change of the rule that redirects the HTTP requests of a virtual service to HTTPS on a port, as
// the first rule of its policy. Port 0 removes the rule. Rules of others are kept.
func (b *Balancers) SetRedirect(ctx context.Context, service string, port int) (Task, error) {
	rules, err := b.requestRules(ctx, service)
	if err != nil {
		return Task{}, err
	}
	values := slices.DeleteFunc(slices.Clone(rules), wireRequestRule.isRedirect)
	if port == 0 && len(values) == len(rules) {
		return Task{State: TaskSucceeded, Owner: service}, nil
	}
	if port != 0 {
		values = slices.Insert(values, 0, redirectTo(port))
	}
	if values == nil {
		values = []wireRequestRule{}
	}
	task, err := startJSON(ctx, b.client, http.MethodPut, requestRulesPath(service), map[string]any{"values": values})
	return task, failure.Wrap(err, "changing the HTTP policy of virtual service", service)
}

func (b *Balancers) requestRules(ctx context.Context, service string) ([]wireRequestRule, error) {
	l := api.Listing{Path: requestRulesPath(service), What: "HTTP request rules", Of: " of virtual service " + service}
	return api.ListAll[wireRequestRule](ctx, b.client, l)
}

func requestRulesPath(service string) string {
	return servicePath(service) + httpPolicyPath + "requestRules"
}
