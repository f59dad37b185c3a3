// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// AwaitRights waits until service accounts have the rights that the roles and bindings in objects grant. The authorizer
// of the API server observes them with a delay, and an aggregated ClusterRole gets its rules even later. A program that
// starts earlier would be denied access.
func (s *Stack) AwaitRights(ctx context.Context, objects ...unstructured.Unstructured) error {
	rights, err := grantedRights(objects)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for len(rights) > 0 {
		review := &authorizationv1.SubjectAccessReview{Spec: rights[0]}
		answer, err := s.clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("checking the rights of %s: %w", rights[0].User, err)
		}
		if answer.Status.Allowed {
			rights = rights[1:]
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s may not %+v: %w", rights[0].User, *rights[0].ResourceAttributes, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// roles are the rules of roles, by kind and name.
type roles map[rbacv1.RoleRef][]rbacv1.PolicyRule

// grantedRights returns the first right of each rule that is bound to a service account. One right per rule is enough,
// because the API server observes rules as a whole.
func grantedRights(objects []unstructured.Unstructured) ([]authorizationv1.SubjectAccessReviewSpec, error) {
	known, err := collectRoles(objects)
	if err != nil {
		return nil, err
	}
	var rights []authorizationv1.SubjectAccessReviewSpec
	for i := range objects {
		if !strings.HasSuffix(objects[i].GetKind(), "RoleBinding") {
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{} // a RoleBinding has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, binding); err != nil {
			return nil, fmt.Errorf("reading the binding %s: %w", objects[i].GetName(), err)
		}
		for _, subject := range binding.Subjects {
			for _, rule := range known[binding.RoleRef] {
				if right := firstRight(rule, objects[i].GetNamespace()); right != nil &&
					subject.Kind == rbacv1.ServiceAccountKind {
					rights = append(rights, authorizationv1.SubjectAccessReviewSpec{
						User:               "system:serviceaccount:" + subject.Namespace + ":" + subject.Name,
						ResourceAttributes: right,
					})
				}
			}
		}
	}
	return rights, nil
}

func collectRoles(objects []unstructured.Unstructured) (roles, error) {
	known := roles{}
	parsed := []*rbacv1.ClusterRole{}
	for i := range objects {
		kind := objects[i].GetKind()
		if kind != "Role" && kind != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, role); err != nil {
			return nil, fmt.Errorf("reading the role %s: %w", objects[i].GetName(), err)
		}
		known[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.Name}] = role.Rules
		parsed = append(parsed, role)
	}
	for _, role := range parsed {
		if role.AggregationRule == nil {
			continue
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
		for _, part := range parsed {
			if part != role && aggregates(part, role.AggregationRule) {
				known[ref] = append(slices.Clone(known[ref]), part.Rules...)
			}
		}
	}
	return known, nil
}

func aggregates(part *rbacv1.ClusterRole, whole *rbacv1.AggregationRule) bool {
	return slices.ContainsFunc(whole.ClusterRoleSelectors, func(selected metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&selected)
		return err == nil && selector.Matches(labels.Set(part.Labels))
	})
}

// firstRight returns the first right that a rule grants in a namespace, or in all if namespace is empty. It returns nil
// for a rule for paths.
func firstRight(rule rbacv1.PolicyRule, namespace string) *authorizationv1.ResourceAttributes {
	if len(rule.Resources) == 0 || len(rule.APIGroups) == 0 || len(rule.Verbs) == 0 {
		return nil
	}
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	right := &authorizationv1.ResourceAttributes{
		Verb:        rule.Verbs[0],
		Group:       rule.APIGroups[0],
		Resource:    resource,
		Subresource: sub,
		Namespace:   namespace,
	}
	if len(rule.ResourceNames) > 0 {
		right.Name = rule.ResourceNames[0]
	}
	return right
}
