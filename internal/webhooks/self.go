// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// self knows the name of the manager's user. It asks the API server for it when it is first needed.
type self struct {
	client client.Writer

	mu   sync.Mutex
	name string
}

// made reports whether the manager's user makes a request, which may come from another replica. Managers of several
// namespaces or shards share the webhooks of one, so any service account in its namespace is the manager's.
func (s *self) made(ctx context.Context) (bool, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the admission request: %w", err)
	}
	name, err := s.user(ctx)
	if err != nil {
		return false, err
	}
	accounts, ok := accountsBeside(name)
	return name == request.UserInfo.Username || ok && slices.Contains(request.UserInfo.Groups, accounts), nil
}

// accountsBeside returns the group of all service accounts in the namespace of user, if it is one.
func accountsBeside(user string) (string, bool) {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, _ := strings.Cut(account, ":")
	return "system:serviceaccounts:" + namespace, ok
}

func (s *self) user(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" {
		return s.name, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := s.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("reading the user of the manager: %w", err)
	}
	s.name = review.Status.UserInfo.Username
	return s.name, nil
}
