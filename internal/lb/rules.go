// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"strconv"
	"strings"
)

// HTTPRules are rules for the requests of an HTTP or HTTPS listener, and for their responses. The zero value means none.
type HTTPRules struct {
	// Redirect is the port to which an HTTP listener redirects requests, as HTTPS. 0 means no redirect.
	Redirect int
	// RequestHeaders and ResponseHeaders are headers that are set or removed.
	RequestHeaders, ResponseHeaders Headers
}

// Headers are HTTP headers, one a line, sorted by name: "Name: value" sets a header, "Name:" removes it.
type Headers string

// words returns the rules for a hash.
func (r HTTPRules) words() []string {
	return []string{strconv.Itoa(r.Redirect), string(r.RequestHeaders), string(r.ResponseHeaders)}
}

// HeaderLine returns the line of [Headers] that sets a header to a value, or removes it if the value is empty.
func HeaderLine(name, value string) string {
	return strings.TrimSuffix(name+": "+value, " ")
}

// Each calls f with each header and its value, which is empty if the header is removed.
func (h Headers) Each(f func(name, value string)) {
	for line := range strings.Lines(string(h)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		f(name, strings.TrimPrefix(value, " "))
	}
}

// validateRules refuses rules that are impossible.
func validateRules(in input, l Listener) outcome {
	out := in.outcome()
	rules := l.Rules
	switch {
	case rules == HTTPRules{}:
	case rules.Redirect != 0 && l.Application != HTTP:
		out.refuse(Unsupported, "port %d cannot redirect requests, because it is %s: set its appProtocol to http", l.Port,
			l.Application)
	case l.Application != HTTP && l.Application != HTTPS:
		out.refuse(Unsupported, "port %d cannot change headers, because it is %s: set its appProtocol to http or https", l.Port,
			l.Application)
	case rules.Redirect != 0 && !in.can.HTTPPolicies:
		out.refuse(Unsupported, "port %d redirects requests, which requires VCD 10.5 (API version 38.0): remove the annotation of the redirect, or ask the provider for an upgrade", l.Port)
	case !in.can.HTTPPolicies:
		out.refuse(Unsupported, "port %d changes HTTP headers, which requires VCD 10.5 (API version 38.0): remove the annotations of headers, or ask the provider for an upgrade", l.Port)
	case rules.Redirect != 0 && (!isPort(rules.Redirect) || rules.Redirect == l.Port):
		out.refuse(InvalidPort, "port %d cannot redirect requests to port %d: use the port of HTTPS", l.Port, rules.Redirect)
	}
	return out
}
