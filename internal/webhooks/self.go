package webhooks

import (
	"context"
	"fmt"
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

// made reports whether the manager's user makes a request, which may come from another replica.
func (s *self) made(ctx context.Context) (bool, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the admission request: %w", err)
	}
	name, err := s.user(ctx)
	return err == nil && name == request.UserInfo.Username, err
}

func (s *self) user(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" {
		return s.name, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := s.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("asking for the user of the manager: %w", err)
	}
	s.name = review.Status.UserInfo.Username
	return s.name, nil
}
