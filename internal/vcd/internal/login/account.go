// SPDX-License-Identifier: Apache-2.0

package login

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// systemOrg is the provider's organization. It has separate login endpoints.
const systemOrg = "system"

// An Account is the identity of a session.
type Account struct {
	Org         string // overridden by an organization in the user name
	Credentials Credentials
	// ServiceAccount, if not nil, is used instead of Credentials.
	ServiceAccount *ServiceAccount
}

// IsProvider reports whether the account belongs to the System organization.
func (a Account) IsProvider() bool {
	org, _ := a.identity()
	return IsSystem(org)
}

// identity returns the organization and the user name. A user name of the form org/user overrides the organization.
func (a Account) identity() (org, user string) {
	if first, second, ok := strings.Cut(a.Credentials.Username, "/"); ok {
		return first, second
	}
	return a.Org, a.Credentials.Username
}

// IsSystem reports whether org is the provider's organization.
func IsSystem(org string) bool { return strings.EqualFold(org, systemOrg) }

// Credentials are a user name and password, or an API token. The token takes precedence. Username may have the form
// "org/user" to log in to an organization other than the one that the session works in ("System/administrator").
type Credentials struct {
	Username string
	Password string
	APIToken string
}

// String keeps credentials out of printed values.
func (Credentials) String() string { return transport.Redacted }

// GoString keeps credentials out of values printed with %#v.
func (Credentials) GoString() string { return transport.Redacted }

// MarshalText keeps credentials out of JSON, such as logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(transport.Redacted), nil }
