// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	us  = "system:serviceaccount:ours:manager"
	log = `{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"list","objectRef":{"resource":"secrets","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"patch","objectRef":{"resource":"crds","name":"a","apiGroup":"x.io"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"patch","objectRef":{"resource":"vms","subresource":"status","name":"b","namespace":"n","apiGroup":"x.io"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"delete","objectRef":{"resource":"pods","name":"c","namespace":"n"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"delete","objectRef":{"resource":"pods","name":"c","namespace":"n"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"user":{"username":"system:serviceaccount:ours:manager"},"verb":"get","requestURI":"/version","annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"other"},"verb":"get","objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"userna`
)

func requests(t *testing.T) []Request {
	t.Helper()
	all, err := Read(strings.NewReader(log))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return all
}

func TestDeniedRequestsAreReportedOnce(t *testing.T) {
	g := NewWithT(t)

	found := Compare(requests(t), us, nil)

	g.Expect(found.Denied).To(Equal([]string{`delete pods c in namespace "n"`}))
	g.Expect(found.Requests).To(Equal(5))
}

func TestRightsWithoutRequestsAreUnused(t *testing.T) {
	g := NewWithT(t)
	rights, err := RightsOf([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}},
		{
			APIGroups:     []string{"x.io"},
			Resources:     []string{"crds"},
			ResourceNames: []string{"a", "b"},
			Verbs:         []string{"patch"},
		},
		{APIGroups: []string{"x.io"}, Resources: []string{"vms", "vms/status"}, Verbs: []string{"patch"}},
	})
	g.Expect(err).NotTo(HaveOccurred())

	found := Compare(requests(t), us, rights)

	g.Expect(found.Unused).To(ConsistOf(
		Right{"get", "", "secrets", ""}, // used by another account
		Right{"delete", "", "pods", ""}, // denied
		Right{"patch", "x.io", "crds", "b"},
		Right{"patch", "x.io", "vms", ""}, // used only for the status
	))
}

func TestUnboundedRulesAreErrors(t *testing.T) {
	rules := map[string]rbacv1.PolicyRule{
		"all verbs":     {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
		"all resources": {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		"paths":         {NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			_, err := RightsOf([]rbacv1.PolicyRule{rule})

			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

func TestAllowancesWithoutRightsAreStale(t *testing.T) {
	g := NewWithT(t)
	rare := Right{"update", "", "events", ""}
	unused := []Right{rare, {"get", "", "secrets", ""}}
	allowances := []Allowance{
		{Verbs: []string{"update"}, Resources: []string{"events"}, Why: "rare"},
		{Verbs: []string{"update"}, Resources: []string{"pods"}, Why: "revoked"},
	}

	left, stale := Excuse(unused, unused, allowances)

	g.Expect(left).To(Equal([]Right{{"get", "", "secrets", ""}}))
	g.Expect(stale).To(Equal(allowances[1:]))
}

func TestInvalidLogIsAnError(t *testing.T) {
	_, err := Read(strings.NewReader("not JSON\n"))

	NewWithT(t).Expect(err).To(HaveOccurred())
}
