// SPDX-License-Identifier: Apache-2.0

package vcd

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
func (c Config) account() account {
	return account{
		Org:            c.Org,
		Credentials:    c.Credentials,
		ServiceAccount: c.ServiceAccount,
	}
}
