// SPDX-License-Identifier: Apache-2.0

// Package audit compares the requests of a program to the Kubernetes API server with its shipped rights. It finds
// missing and unused rights in the API server's audit log. It is independent of this provider.
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

// A Right is the permission for one verb on one resource. Name restricts it to one object. If Name is empty, the right
// covers all objects.
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

// RightsOf returns all rights that rules grant. Rules with wildcards or paths are errors, because they cannot be
// compared with requests.
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
	Right           Right // including the name of the object, if any
	Denied          bool
}

// event contains the required fields of an audit event.
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

// Read returns the requests for objects in an audit log. It skips requests for paths, such as discovery, which need no
// right of the program. While the API server runs, the last line may be incomplete.
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

// A Finding is the result of comparing requests with rights.
type Finding struct {
	Requests int
	Denied   []string // denied requests
	Unused   []Right  // rights that no request used
}

// Compare compares the requests of a user with the user's rights.
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

// An Allowance lists rights that may be unused, and the reason.
type Allowance struct {
	Verbs     []string
	Group     string
	Resources []string
	Why       string
}

func (a Allowance) covers(r Right) bool {
	return a.Group == r.Group && slices.Contains(a.Verbs, r.Verb) && slices.Contains(a.Resources, r.Resource)
}

// Excuse returns the unused rights that no allowance covers, and the stale allowances, which cover no granted right.
func Excuse(unused, rights []Right, allowances []Allowance) (remaining []Right, stale []Allowance) {
	for _, right := range unused {
		if !slices.ContainsFunc(allowances, func(a Allowance) bool { return a.covers(right) }) {
			remaining = append(remaining, right)
		}
	}
	for _, a := range allowances {
		if !slices.ContainsFunc(rights, a.covers) {
			stale = append(stale, a)
		}
	}
	return remaining, stale
}
