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

// managerUser caches the user name of the manager, which it reads from the API server on first use.
type managerUser struct {
	client client.Writer

	mu   sync.Mutex
	name string
}

// sent reports whether the manager sent a request, possibly from another replica. Managers of several namespaces or
// shards share the webhooks of one manager, so any service account in its namespace counts as the manager.
func (u *managerUser) sent(ctx context.Context) (bool, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the admission request: %w", err)
	}
	name, err := u.user(ctx)
	if err != nil {
		return false, err
	}
	accounts, ok := serviceAccountGroup(name)
	return name == request.UserInfo.Username || ok && slices.Contains(request.UserInfo.Groups, accounts), nil
}

// serviceAccountGroup returns the group of all service accounts in the namespace of user, and reports whether user is a
// service account.
func serviceAccountGroup(user string) (string, bool) {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, _ := strings.Cut(account, ":")
	return "system:serviceaccounts:" + namespace, ok
}

func (u *managerUser) user(ctx context.Context) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.name != "" {
		return u.name, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := u.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("reading the user of the manager: %w", err)
	}
	u.name = review.Status.UserInfo.Username
	return u.name, nil
}
