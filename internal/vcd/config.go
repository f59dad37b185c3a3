// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
)

// A Config says where and as whom to work. Two equal Configs share one session.
type Config struct {
	Site        string // https://host[:port], without /api
	Org         string // name of the organization
	Credentials Credentials
	CABundle    []byte // PEM; nil uses the system's roots
	Insecure    bool   // skip TLS verification: only by explicit opt-in
	// ServiceAccount replaces Credentials; nil: there is none.
	ServiceAccount *ServiceAccount
	// Version distinguishes revisions of the same credentials (a Secret's resourceVersion): one wrong
	// password is tried once per Version. That of a service account stays while it changes its token itself.
	Version string
	// Accepted is true if VCD accepted these credentials before, maybe in an earlier process: if it refuses them now,
	// they may be right again later.
	Accepted bool
}

// account returns whom to log in as.
func (c Config) account() login.Account {
	return login.Account{
		Org:            c.Org,
		Credentials:    c.Credentials,
		ServiceAccount: c.ServiceAccount,
	}
}

// Credentials are what a session logs in with: a user with a password, or an API token. The token wins.
// Username may be written as "org/user" to log in to another organization than the one worked in
// ("System/administrator").
type Credentials = login.Credentials

// A ServiceAccount logs in with a token that changes with each login, one login at a time. Sessions of several
// organizations may share it, but all of one [Pool] of one process.
type ServiceAccount = login.ServiceAccount

// A TokenStore keeps the token of a service account. VCD replaces it with each login, and knows only the last, so
// only one process may use it.
type TokenStore = login.TokenStore

// NewServiceAccount returns a service account with its token in a store.
func NewServiceAccount(tokens TokenStore) *ServiceAccount { return login.NewServiceAccount(tokens) }
