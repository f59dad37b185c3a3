// SPDX-License-Identifier: Apache-2.0

package login

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// systemOrg is the organization of the provider; it logs in elsewhere.
const systemOrg = "system"

// An Account is as whom to log in.
type Account struct {
	Org         string // the organization, unless the user name has another
	Credentials Credentials
	// ServiceAccount replaces Credentials; nil: there is none.
	ServiceAccount *ServiceAccount
}

// IsProvider reports whether the account is one of the organization System.
func (a Account) IsProvider() bool {
	org, _ := a.identity()
	return IsSystem(org)
}

// identity splits the organization off a user name of the form org/user.
func (a Account) identity() (org, user string) {
	if first, second, ok := strings.Cut(a.Credentials.Username, "/"); ok {
		return first, second
	}
	return a.Org, a.Credentials.Username
}

// IsSystem reports whether an organization is that of the provider.
func IsSystem(org string) bool { return strings.EqualFold(org, systemOrg) }

// Credentials are what a session logs in with: a user with a password, or an API token. The token wins.
// Username may be written as "org/user" to log in to another organization than the one worked in
// ("System/administrator").
type Credentials struct {
	Username string
	Password string
	APIToken string
}

// String keeps credentials out of everything that prints a value.
func (Credentials) String() string { return transport.Redacted }

// GoString keeps credentials out of everything that prints a value in detail.
func (Credentials) GoString() string { return transport.Redacted }

// MarshalText keeps credentials out of everything that writes JSON, such as logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(transport.Redacted), nil }
