// SPDX-License-Identifier: Apache-2.0

// Package audit holds what a program asked the Kubernetes API server for against the rights it is shipped with: which
// it lacked, and which were not used. It reads the API server's audit log, and knows nothing of this provider.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A Right is leave to do one thing to one kind of object. Names are those of objects that it is limited to, or empty.
type Right struct {
	Verb, Group, Resource, Name string
}

// String formats a right for messages.
func (r Right) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Name != "" {
		resource += " " + r.Name
	}
	return r.Verb + " " + resource
}

// RightsOf lists every right that rules grant. Rules with wildcards or paths are an error: they cannot be compared
// with requests.
func RightsOf(rules []rbacv1.PolicyRule) ([]Right, error) {
	var rights []Right
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("a rule for paths: %v", rule.NonResourceURLs)
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						right := Right{verb, group, resource, name}
						if strings.Contains(right.String(), "*") {
							return nil, fmt.Errorf("a rule with a wildcard: %s", right)
						}
						rights = append(rights, right)
					}
				}
			}
		}
	}
	return rights, nil
}

// A Request is a request to the API server.
type Request struct {
	User, Namespace string
	Right           Right // with the name of the object, if there is one
	Denied          bool
}

// event is the part of an audit event that matters here.
type event struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb      string `json:"verb"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Read reads the requests for objects in an audit log; requests for paths, such as discovery, need no right of ours.
// The last line may be half-written, while the API server runs.
func Read(log io.Reader) ([]Request, error) {
	var requests []Request
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.ObjectRef == nil {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		requests = append(requests, Request{
			User:      e.User.Username,
			Namespace: e.ObjectRef.Namespace,
			Right:     Right{e.Verb, e.ObjectRef.APIGroup, resource, e.ObjectRef.Name},
			Denied:    e.Annotations["authorization.k8s.io/decision"] == "forbid",
		})
	}
}

// A Finding is how rights and requests fit.
type Finding struct {
	Requests int
	Denied   []string // what was asked for and is not allowed
	Unused   []Right  // what is allowed and was not asked for
}

// Compare holds the requests of one user against the rights it has.
func Compare(requests []Request, user string, rights []Right) Finding {
	var found Finding
	used := map[Right]bool{}
	for _, r := range requests {
		if r.User != user {
			continue
		}
		found.Requests++
		if denied := fmt.Sprintf("%s in namespace %q", r.Right, r.Namespace); r.Denied &&
			!slices.Contains(found.Denied, denied) {
			found.Denied = append(found.Denied, denied)
		}
		if !r.Denied {
			used[r.Right] = true
			unnamed := r.Right
			unnamed.Name = ""
			used[unnamed] = true
		}
	}
	for _, right := range rights {
		if !used[right] {
			found.Unused = append(found.Unused, right)
		}
	}
	slices.Sort(found.Denied)
	return found
}

// An Allowance is rights that may go unused, and why they are there all the same.
type Allowance struct {
	Verbs     []string
	Group     string
	Resources []string
	Why       string
}

func (a Allowance) covers(r Right) bool {
	return a.Group == r.Group && slices.Contains(a.Verbs, r.Verb) && slices.Contains(a.Resources, r.Resource)
}

// Excuse takes out of unused what allowances cover. It also returns the allowances that are for rights no account has
// any more.
func Excuse(unused, rights []Right, allowances []Allowance) (left []Right, stale []Allowance) {
	for _, right := range unused {
		if !slices.ContainsFunc(allowances, func(a Allowance) bool { return a.covers(right) }) {
			left = append(left, right)
		}
	}
	for _, a := range allowances {
		if !slices.ContainsFunc(rights, a.covers) {
			stale = append(stale, a)
		}
	}
	return left, stale
}
