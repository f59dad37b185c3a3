// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

const someRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {part: "of-it"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {part: "of-it"}}
rules:
- {apiGroups: [""], resources: [nodes/status, nodes], verbs: [patch, get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: home}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [mine], verbs: [update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: unbound}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whole}
subjects: [{kind: ServiceAccount, namespace: home, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: home}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, namespace: home, name: manager}]
`

func TestGrantedRights(t *testing.T) {
	g := NewWithT(t)
	objects, err := utilyaml.ToUnstructured([]byte(someRoles))
	g.Expect(err).NotTo(HaveOccurred())

	rights, err := grantedRights(objects)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rights).To(ConsistOf(
		authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:home:manager",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb:        "patch",
				Resource:    "nodes",
				Subresource: "status",
			},
		},
		authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:home:manager",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb:      "update",
				Group:     "coordination.k8s.io",
				Resource:  "leases",
				Name:      "mine",
				Namespace: "home",
			},
		},
	))
}
