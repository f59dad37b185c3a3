// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
)

// A Config identifies the site, the organization and the credentials of a session. Equal Configs share one session.
type Config struct {
	Site        string // https://host[:port], without /api
	Org         string // name of the organization
	Credentials Credentials
	CABundle    []byte // PEM; nil uses the system's roots
	Insecure    bool   // skip TLS verification: only by explicit opt-in
	// ServiceAccount, if not nil, is used instead of Credentials.
	ServiceAccount *ServiceAccount
	// Version distinguishes revisions of the same credentials, such as the resourceVersion of a Secret: a wrong
	// password is tried once per Version. For a service account, it does not change when the account replaces its
	// token.
	Version string
	// Accepted is true if VCD has accepted these credentials before, possibly in an earlier process. If VCD rejects
	// them now, they may work again later.
	Accepted bool
}

// account returns the account to log in with.
func (c Config) account() login.Account {
	return login.Account{
		Org:            c.Org,
		Credentials:    c.Credentials,
		ServiceAccount: c.ServiceAccount,
	}
}

// Credentials are a user name and password, or an API token. The token takes precedence. Username may have the form
// "org/user" to log in to an organization other than the one that the session works in ("System/administrator").
type Credentials = login.Credentials

// A ServiceAccount logs in with a token that changes with each login, one login at a time. Sessions of several
// organizations may share it, but only within one [Pool] of one process.
type ServiceAccount = login.ServiceAccount

// A TokenStore stores the token of a service account. VCD replaces the token with each login and accepts only the
// latest one, so only one process may use it.
type TokenStore = login.TokenStore

// NewServiceAccount returns a service account whose token is in a store.
func NewServiceAccount(tokens TokenStore) *ServiceAccount { return login.NewServiceAccount(tokens) }
