package vcd

import (
	"context"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/config"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Sessions give the session of the controller, with the credentials that there are now.
type Sessions struct {
	pool    *vcd.Pool
	config  vcd.Config
	keyring func() (config.Credentials, error)

	account *vcd.ServiceAccount // in place of the keyring; nil: there is none

	mu   sync.Mutex
	last vcd.Config
	err  error
}

// NewSessions returns the sessions of a pool, as the configuration and the keyring say.
func NewSessions(pool *vcd.Pool, c config.Config, keyring func() (config.Credentials, error)) *Sessions {
	return &Sessions{
		pool: pool, keyring: keyring,
		config: vcd.Config{Site: c.Site, Org: c.Org, CABundle: c.CABundle, Insecure: c.Insecure},
	}
}

// As makes the sessions those of a service account.
func (s *Sessions) As(account *vcd.ServiceAccount) *Sessions {
	s.account = account
	return s
}

// Session returns the session, logging in if need be. When credentials have changed, the session with the old ones ends.
func (s *Sessions) Session(ctx context.Context) (*vcd.Session, error) {
	config, err := s.current()
	if err != nil {
		return nil, s.note(err)
	}
	s.replace(ctx, config)
	session, err := s.pool.Session(ctx, config)
	if s.note(err) != nil {
		return nil, err
	}
	return session, nil
}

func (s *Sessions) current() (vcd.Config, error) {
	config := s.config
	if s.account != nil {
		config.ServiceAccount = s.account
		return config, nil
	}
	c, err := s.keyring()
	if err != nil {
		return vcd.Config{}, err
	}
	config.Credentials = vcd.Credentials{Username: c.Username, Password: c.Password, APIToken: c.APIToken}
	config.Version = c.Version
	return config, nil
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

func (s *Sessions) note(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

// Problem returns why there is no session, as far as the last who asked knows.
func (s *Sessions) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
