// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Sessions provide the session of the controller, with the current credentials.
type Sessions struct {
	pool        *vcd.Pool
	config      vcd.Config // without credentials
	credentials func() (vcd.Credentials, string, error)

	account *vcd.ServiceAccount // used instead of the credentials; nil: none

	mu   sync.Mutex
	last vcd.Config
}

// NewSessions returns sessions of a pool. credentials returns the current credentials with their version.
func NewSessions(pool *vcd.Pool, config vcd.Config, credentials func() (vcd.Credentials, string, error)) *Sessions {
	return &Sessions{pool: pool, config: config, credentials: credentials}
}

// As makes the sessions use a service account.
func (s *Sessions) As(account *vcd.ServiceAccount) *Sessions {
	s.account = account
	return s
}

// Session returns the session, and logs in if needed. When the credentials have changed, it ends the session with the
// old ones.
func (s *Sessions) Session(ctx context.Context) (*vcd.Session, error) {
	config, err := s.current()
	if err != nil {
		return nil, err
	}
	s.replace(ctx, config)
	return s.pool.Session(ctx, config)
}

func (s *Sessions) current() (vcd.Config, error) {
	config := s.config
	if s.account != nil {
		config.ServiceAccount = s.account
		return config, nil
	}
	var err error
	config.Credentials, config.Version, err = s.credentials()
	return config, err
}

func (s *Sessions) replace(ctx context.Context, config vcd.Config) {
	s.mu.Lock()
	last := s.last
	s.last = config
	s.mu.Unlock()
	if last.Version != "" && last.Version != config.Version {
		s.pool.Logout(ctx, last)
	}
}
